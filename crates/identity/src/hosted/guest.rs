//! Somebody in front of a page of an app: their browser, and the app's looks and words.

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue};
use kernel::{Code, Error, Result};
use tenancy::{
    App,
    branding::{self, Translations},
    federation::{self, Provider},
    logins,
};
use web::pages::{Brand, HostedPage, PageSetting, Words};

use super::{
    Reply,
    cookies::{Cookie, Jar},
};
use crate::{
    Identity,
    browser::Request,
    sessions::{self, LoginClaims},
};

/// Longer than anybody leaves a login page open.
const BROWSER_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
const KEY_LENGTH: usize = 43;

pub(crate) struct Guest {
    pub(crate) identity: Identity,
    pub(crate) app: Arc<App>,
    pub(crate) client: IpAddr,
    jar: Jar,
    headers: HeaderMap,
    /// What only this browser knows, and whether it has to be told.
    key: String,
    is_new: bool,
    brand: Brand,
    words: Translations,
    /// Whether the app has connections to identity providers.
    pub(crate) federated: bool,
    /// The providers of the app that people can sign in with.
    pub(crate) providers: Vec<(Provider, String)>,
}

impl Guest {
    /// `way_back` is where somebody starts again to whom something has failed.
    pub(crate) async fn of(
        identity: &Identity,
        from: &Request,
        app: Arc<App>,
        way_back: Option<String>,
    ) -> Result<Self> {
        let (looks, room) = (Arc::clone(&app), identity.clone());
        let (brand, words, federated, providers) = identity
            .tenancy
            .db
            .read(move |tx| {
                let words = branding::translations(tx, looks.id)?;
                let providers = room.federation.providers.offered(tx, &room.tenancy, &looks)?;
                Ok((branding::brand(tx, &looks)?, words, federation::any(tx, looks.id)?, providers))
            })
            .await?;
        let (translations, language) = (words.clone(), words.get("en").to_owned());
        let say: Words = Arc::new(move |text| translations.get(text).to_owned());
        from.scope.set_page(PageSetting { brand: brand.clone(), language, words: say, way_back });
        let jar = Jar::new(app.id, &identity.tenancy.base_url);
        let known = jar.read(&from.headers, Cookie::Browser).filter(|key| key.len() == KEY_LENGTH);
        Ok(Self {
            identity: identity.clone(),
            app,
            client: from.scope.client(),
            jar,
            key: known.map_or_else(|| identity.tenancy.db.entropy().base62(KEY_LENGTH), str::to_owned),
            is_new: known.is_none(),
            headers: from.headers.clone(),
            brand,
            words,
            federated,
            providers,
        })
    }

    /// 403 unless a form was sent from one of these pages, by this browser.
    pub(crate) fn check_form(&self, csrf: &str) -> Result<()> {
        let is_foreign = self.headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
        if self.is_new || is_foreign || !self.is_own(csrf) {
            return Err(Error::new(
                Code::FormRejected,
                "This form has expired, or your browser blocks cookies. Go back, reload the page and try again.",
            ));
        }
        Ok(())
    }

    pub(crate) fn csrf(&self) -> String {
        self.identity.tenancy.keyring.fingerprint(&self.form_context(), &self.key)
    }

    fn is_own(&self, csrf: &str) -> bool {
        self.identity.tenancy.keyring.matches_fingerprint(&self.form_context(), &self.key, csrf)
    }

    /// What a login at an identity provider is bound to: this browser can show it again, and no other.
    pub(crate) fn browser(&self) -> String {
        self.identity.tenancy.keyring.fingerprint(&self.provider_context(), &self.key)
    }

    pub(crate) fn is_browser(&self, known: &str) -> bool {
        self.identity.tenancy.keyring.matches_fingerprint(&self.provider_context(), &self.key, known)
    }

    fn provider_context(&self) -> String {
        format!("federation:{}", self.app.id)
    }

    fn form_context(&self) -> String {
        format!("form:{}", self.app.id)
    }

    /// The text in the app's words, with the app's name in its place.
    pub(crate) fn say(&self, text: &str) -> String {
        self.words.get(text).replace("{appName}", &self.brand.app_name)
    }

    /// The same about somebody's address.
    pub(crate) fn say_of(&self, text: &str, email: &str) -> String {
        self.say(text).replace("{email}", email)
    }

    /// A page in the app's looks.
    pub(crate) fn page(&self, title: &str) -> HostedPage {
        HostedPage::new(&self.brand, &self.say(title)).language(self.words.get("en"))
    }

    /// The page with a way to the app itself, if it has told one.
    pub(crate) fn with_way_to_app(&self, page: HostedPage) -> HostedPage {
        let profile = &self.app.profile;
        match profile.ui_url.as_ref().or(profile.website_url.as_ref()) {
            Some(address) => page.link("", &self.say("Open {appName}"), address),
            None => page,
        }
    }

    /// The browser gets its key along with the first page.
    pub(crate) fn show(&self, page: HostedPage) -> Reply {
        self.carry(Reply::page(page))
    }

    /// The same for whatever else is answered first.
    pub(crate) fn carry(&self, reply: Reply) -> Reply {
        if self.is_new { reply.with_cookie(self.jar.set(Cookie::Browser, &self.key, BROWSER_LIFETIME)) } else { reply }
    }

    /// The same for a page that has shown what a form left for it.
    pub(crate) fn show_once(&self, page: HostedPage) -> Reply {
        let reply = self.show(page);
        if self.cookie(Cookie::Flash).is_some() { reply.with_cookie(self.clear(Cookie::Flash)) } else { reply }
    }

    pub(crate) fn set(&self, cookie: Cookie, value: &str, lifetime: Duration) -> HeaderValue {
        self.jar.set(cookie, value, lifetime)
    }

    pub(crate) fn clear(&self, cookie: Cookie) -> HeaderValue {
        self.jar.clear(cookie)
    }

    pub(crate) fn cookie(&self, cookie: Cookie) -> Option<&str> {
        self.jar.read(&self.headers, cookie)
    }

    /// The login under way in this browser.
    pub(crate) fn login(&self) -> Result<LoginClaims> {
        let token = self.cookie(Cookie::Login).ok_or_else(logins::ended)?;
        let claims = sessions::verify(&self.identity.tenancy, token)?;
        if claims.aid == self.app.id { Ok(claims) } else { Err(logins::ended()) }
    }
}
