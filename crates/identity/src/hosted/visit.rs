//! Somebody on a page of the hosted login: the app, what it asked for, the browser, and the app's looks and words.

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue};
use kernel::{Code, Error, Result};
use tenancy::{
    App,
    branding::{self, Translations},
};
use web::pages::{Brand, HostedPage, PostForm};

use super::{
    Reply,
    cookies::{Cookie, Jar},
};
use crate::{
    Identity,
    authorize::{LoginRequest, redirects},
    browser::Request,
    sessions::{self, Claims},
};

/// Longer than anybody leaves a login page open.
const BROWSER_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
const KEY_LENGTH: usize = 43;

pub(crate) struct Visit {
    pub(crate) identity: Identity,
    pub(crate) app: Arc<App>,
    pub(crate) request: LoginRequest,
    pub(crate) client: IpAddr,
    jar: Jar,
    headers: HeaderMap,
    /// What only this browser knows, and whether it has to be told.
    key: String,
    is_new: bool,
    brand: Brand,
    words: Translations,
}

impl Visit {
    /// A page that was asked for. `sealed` is the login request in its address.
    pub(crate) async fn open(identity: &Identity, from: &Request, sealed: &str) -> Result<Self> {
        let request = LoginRequest::open(&identity.tenancy, sealed)?;
        Self::for_request(identity, from, request).await
    }

    /// A page for a request that comes from elsewhere, such as a mailed link.
    pub(crate) async fn for_request(identity: &Identity, from: &Request, request: LoginRequest) -> Result<Self> {
        let app = identity.app(from, request.app)?;
        // What was registered when the login began may have been taken back since.
        if redirects::registered(&app.profile, Some(&request.redirect_uri)).is_none() {
            return Err(Error::invalid(
                "redirect_uri",
                "is not registered any more. Go back to the app and start again",
            ));
        }
        let looks = Arc::clone(&app);
        let (brand, words) = identity
            .tenancy
            .db
            .read(move |tx| Ok((branding::brand(tx, &looks)?, branding::translations(tx, looks.id)?)))
            .await?;
        from.scope.set_brand(brand.clone());
        let jar = Jar::new(app.id, &identity.tenancy.base_url);
        let known = jar.read(&from.headers, Cookie::Browser).filter(|key| key.len() == KEY_LENGTH);
        Ok(Self {
            identity: identity.clone(),
            app,
            request,
            client: from.scope.client(),
            jar,
            key: known.map_or_else(|| identity.tenancy.db.entropy().base62(KEY_LENGTH), str::to_owned),
            is_new: known.is_none(),
            headers: from.headers.clone(),
            brand,
            words,
        })
    }

    /// A form that was sent from one of these pages, by this browser: 403 otherwise.
    pub(crate) async fn submitted(identity: &Identity, from: &Request, sealed: &str, csrf: &str) -> Result<Self> {
        let visit = Self::open(identity, from, sealed).await?;
        visit.check_form(csrf)?;
        Ok(visit)
    }

    pub(crate) fn check_form(&self, csrf: &str) -> Result<()> {
        let is_foreign = self.headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
        if self.is_new || is_foreign || !self.is_own(csrf) {
            return Err(Error::new(
                Code::FormRejected,
                "This form was not sent from its own page, or your browser keeps no cookies. Go back, reload and try again.",
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

    fn form_context(&self) -> String {
        format!("form:{}", self.app.id)
    }

    /// The text in the app's words, with the app's name in its place.
    pub(crate) fn say(&self, text: &str) -> String {
        self.words.get(text).replace("{appName}", &self.brand.app_name)
    }

    /// A page of this login in the app's looks.
    pub(crate) fn page(&self, title: &str) -> HostedPage {
        HostedPage::new(&self.brand, &self.say(title))
            .language(self.words.get("en"))
            .form_target(&self.request.redirect_uri)
    }

    /// A form that belongs to this login and this browser.
    pub(crate) fn form(&self, action: &str) -> Result<PostForm> {
        Ok(PostForm::new(action).hidden("r", &self.sealed()?).hidden("csrf", &self.csrf()))
    }

    fn sealed(&self) -> Result<String> {
        self.request.seal(&self.identity.tenancy)
    }

    /// The address of another page of this login.
    pub(crate) fn path(&self, path: &str) -> Result<String> {
        Ok(format!("{path}?r={}", self.sealed()?))
    }

    /// The browser gets its key along with the first page.
    pub(crate) fn show(&self, page: HostedPage) -> Reply {
        let reply = Reply::page(page);
        if self.is_new { reply.with_cookie(self.jar.set(Cookie::Browser, &self.key, BROWSER_LIFETIME)) } else { reply }
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
    pub(crate) fn login(&self) -> Result<Claims> {
        let token = self.cookie(Cookie::Login).ok_or_else(sessions::over)?;
        let claims = sessions::verify(&self.identity.tenancy, token)?;
        if claims.aid == self.app.id { Ok(claims) } else { Err(sessions::over()) }
    }
}
