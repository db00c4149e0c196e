//! Somebody on a page of a portal: who they are, what their forms have to show, and the app's looks and words.

use std::sync::Arc;

use ::store::Tx;
use http::{HeaderMap, StatusCode};
use identity::hosted::{
    self, Reply,
    cookies::{Cookie, Jar},
    flash::{self, Flash},
};
use kernel::{AppId, Code, Error, Result};
use tenancy::{
    Tenancy,
    branding::{self, Translations},
    workspaces,
};
use web::pages::{Brand, HostedPage, PageSetting, PostForm, Words};

use super::{Visitor, members_page, plan_page, profile_page, refused, settings_page, visitor};
use crate::Core;

const NONCE: usize = 12;
/// Where flashes keep what went wrong with a form as a whole, and what was done.
const FORM: &str = "form";
const DONE: &str = "done";

pub(super) struct Visit {
    pub(super) visitor: Visitor,
    pub(super) workspace: String,
    csrf: String,
    /// Of this showing of a page: its forms are other forms when it is shown again.
    nonce: String,
    tenancy: Tenancy,
    headers: HeaderMap,
    brand: Brand,
    words: Translations,
}

impl Visit {
    /// Whoever this browser's cookie speaks of, with what is read for them at the same moment: 401 without one.
    pub(super) async fn open<T: Send + 'static>(
        core: &Core,
        request: &hosted::Request,
        app: AppId,
        read: impl Fn(&mut Tx<'_>, &Visitor) -> Result<T> + Send + 'static,
    ) -> Result<(Self, T)> {
        let jar = Jar::new(app, &core.base_url);
        let cookie = jar.read(request.headers(), Cookie::Portal).ok_or_else(refused)?.to_owned();
        Self::of(core, request, app, &cookie, read).await
    }

    pub(super) async fn of<T: Send + 'static>(
        core: &Core,
        request: &hosted::Request,
        app: AppId,
        cookie: &str,
        read: impl Fn(&mut Tx<'_>, &Visitor) -> Result<T> + Send + 'static,
    ) -> Result<(Self, T)> {
        let app = core.tenancy.apps.find(app).await?.ok_or_else(|| Error::not_found("app"))?;
        let (cookie, scope) = (cookie.to_owned(), Arc::clone(request.scope()));
        let found = core.db.snapshot(move |tx| {
            let visitor = visitor(tx, &app, &cookie, &scope)?;
            let workspace = workspaces::get(tx, app.id, visitor.tenant)?.name;
            let looks = (branding::brand(tx, &app)?, branding::translations(tx, app.id)?);
            let read = read(tx, &visitor)?;
            Ok((visitor, workspace, looks, read))
        });
        let (visitor, workspace, (brand, words), read) = found.await?;
        let (translations, language) = (words.clone(), words.get("en").to_owned());
        let say: Words = Arc::new(move |text| translations.get(text).to_owned());
        let scope = request.scope();
        scope.set_app(visitor.app.id);
        scope.set_tenant(visitor.tenant);
        if let Some(person) = &visitor.person {
            scope.set_user(person.user());
        }
        scope.set_page(PageSetting { brand: brand.clone(), language, words: say, way_back: None });
        let csrf = core.keyring.fingerprint(&visitor.form_context(), &visitor.cookie);
        let nonce = core.db.entropy().base62(NONCE);
        let (tenancy, headers) = (core.tenancy.clone(), request.headers().clone());
        Ok((Self { visitor, workspace, csrf, nonce, tenancy, headers, brand, words }, read))
    }

    /// 403 unless the form was sent from one of these pages, by this browser.
    pub(super) fn check_form(&self, core: &Core, csrf: &str) -> Result<()> {
        let is_foreign = self.headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
        if is_foreign || !core.keyring.matches_fingerprint(&self.visitor.form_context(), &self.visitor.cookie, csrf) {
            let message = "This form has expired. Go back, reload the page and try again.";
            return Err(Error::new(Code::FormRejected, message));
        }
        Ok(())
    }

    pub(super) fn say(&self, text: &str) -> String {
        self.words.get(text).replace("{appName}", &self.brand.app_name)
    }

    pub(super) fn form(&self, path: &str) -> PostForm {
        PostForm::new(path).hidden("csrf", &self.csrf).hidden("nonce", &self.nonce)
    }

    /// A page in the app's looks, with the ways to those beside it that the visitor may see. `here` is its path.
    pub(super) fn page(&self, title: &str, here: &str) -> HostedPage {
        let page = self.bare_page(title);
        let ways = self.ways();
        if ways.len() > 1 { page.navigation(&ways, here) } else { page }
    }

    pub(super) fn bare_page(&self, title: &str) -> HostedPage {
        HostedPage::new(&self.brand, &self.say(title)).language(self.words.get("en"))
    }

    fn ways(&self) -> Vec<(String, String)> {
        let (visitor, app) = (&self.visitor, self.visitor.app.id);
        let is_person = visitor.person.is_some();
        let ways = [
            (is_person && visitor.holds("USER_READ"), "Members", members_page::path(app)),
            (visitor.holds("TENANT_READ"), "Plan", plan_page::path(app)),
            (is_person && visitor.holds("TENANT_READ"), "Settings", settings_page::path(app)),
            (is_person, "Your profile", profile_page::path(app)),
        ];
        ways.into_iter().filter(|(may, ..)| *may).map(|(_, label, path)| (self.say(label), path)).collect()
    }

    /// The way out of the portal, if the app has told one.
    pub(super) fn with_way_out(&self, page: HostedPage) -> HostedPage {
        match &self.visitor.app.profile.ui_url {
            Some(address) => page.link("", &self.say("Open {appName}"), address),
            None => page,
        }
    }

    /// What a form left for the page with this path.
    pub(super) fn left_for(&self, path: &str) -> Flash {
        flash::left_in(&self.tenancy, self.visitor.app.id, &self.headers, path)
    }

    /// Says what a form left: what went wrong, or what was done.
    pub(super) fn with_news(&self, page: HostedPage, left: &Flash) -> HostedPage {
        let page = if left.is_problem() { page.status(StatusCode::BAD_REQUEST) } else { page };
        match (left.problem_of(FORM), left.typed_in(DONE)) {
            (Some(problem), _) => page.alert(&self.say(problem)),
            (None, Some(done)) => page.notice(&self.say(done)),
            (None, None) => page,
        }
    }

    /// A page that has said it.
    pub(super) fn show_once(&self, page: HostedPage) -> Reply {
        flash::forgotten(&self.tenancy, self.visitor.app.id, &self.headers, Reply::page(page))
    }

    /// Leads to a page of the portal, which says what was done.
    pub(super) fn done(&self, path: String, what: &str) -> Result<Reply> {
        self.lead(path, Flash::new().typed(DONE, what))
    }

    /// Leads back to the page with the form, which says what is wrong. A failure of ours, and a session that is over, are pages of
    /// their own.
    pub(super) fn failed(&self, path: String, left: Flash, error: Error) -> Result<Reply> {
        match error.code() {
            Code::InvalidCredential => Err(error),
            Code::RateLimited => {
                let problem = "Too many emails have been sent. Try again later.";
                self.lead(path, left.problem(FORM, problem))
            }
            code if web::status_of(code.kind()).is_server_error() => Err(error),
            _ => self.lead(path, left.problem(FORM, error.public())),
        }
    }

    /// Leads to a page of the portal, which will show this.
    pub(super) fn lead(&self, path: String, left: Flash) -> Result<Reply> {
        flash::lead_back(&self.tenancy, self.visitor.app.id, path, left)
    }
}
