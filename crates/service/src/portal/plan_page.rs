//! The plan page: which plan the workspace is on, which there are, and a button for each.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use billing::{
    catalog::{self, Plan, PriceOffer},
    providers::checkout::CheckoutRequest,
    subscriptions::{self, Agreement, Status, Subscription},
};
use http::StatusCode;
use identity::hosted::{
    self, Reply,
    cookies::{Cookie, Jar},
};
use kernel::{AppId, Code, Currency, Error, Key, Page, Result, Timestamp, WebUrl};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{
    apps,
    branding::{self, Translations},
    workspaces,
};
use web::{
    Describe, Form, Operation, Params, Path, Routes, State,
    pages::{Brand, HostedPage, PageSetting, PostForm, Words},
};

use super::{Visitor, cookies, enter, entered_before, refused, visitor};
use crate::Core;

const ENTRANCE: &str = "/cloud-views/subscription-portal/selectPlan";
const PATH: &str = "/cloud-views/portal/{app_id}/plan";

pub(super) fn routes() -> Routes<Core> {
    Routes::new("Hosted pages")
        .get(ENTRANCE, select_plan, "Show the plans to whoever has a portal code")
        .page()
        .answers(401, "The code is not valid, or has been used elsewhere")
        .answers(403, "The code's member may not see the plan")
        .merge(pages())
}

fn pages() -> Routes<Core> {
    Routes::pages("Hosted pages").get(PATH, show, "Show the plans to whoever is in the portal").post(
        PATH,
        submit,
        "Change the plan",
    )
}

/// The page for whoever has this code.
pub(super) fn address(core: &Core, code: &str) -> String {
    format!("{}{ENTRANCE}?code={code}", core.base_url)
}

fn path(app: AppId) -> String {
    PATH.replace("{app_id}", &app.to_string())
}

/// A page or a redirect, described as the page.
struct PlanPage(Reply);

impl IntoResponse for PlanPage {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl Describe for PlanPage {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "text/html");
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct CodeQuery {
    /// A handover code, or one of a key's.
    code: String,
}

async fn select_plan(
    request: hosted::Request,
    State(core): State<Core>,
    Params(CodeQuery { code }): Params<CodeQuery>,
) -> Result<PlanPage> {
    let (known, cookies) = (code.clone(), cookies(&core.tenancy, request.headers()));
    let before = core.db.read(move |tx| entered_before(tx, &known, &cookies)).await?;
    if let Some((app, cookie)) = before {
        let visit = Visit::of(&core, &request, app, &cookie).await?;
        return Ok(PlanPage(Reply::page(visit.page(None)?)));
    }
    let (app, cookie, lifetime) = core.db.by(&request).write(move |tx| enter(tx, &code)).await?;
    let visit = Visit::of(&core, &request, app, &cookie).await?;
    let kept = Jar::new(app, &core.base_url).set(Cookie::Portal, &cookie, lifetime);
    Ok(PlanPage(Reply::page(visit.page(None)?).with_cookie(kept)))
}

async fn show(request: hosted::Request, State(core): State<Core>, Path(app): Path<AppId>) -> Result<PlanPage> {
    let visit = Visit::by_cookie(&core, &request, app).await?;
    Ok(PlanPage(Reply::page(visit.page(None)?)))
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// Puts the workspace on a plan, or begins to pay for it.
    Take,
    Trial,
    Cancel,
    Reactivate,
    /// Leads to the provider's portal.
    Manage,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct PlanForm {
    action: Action,
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    plan: Option<Key>,
    #[serde(default)]
    currency: Option<Currency>,
    #[serde(default)]
    interval: Option<catalog::Interval>,
}

impl PlanForm {
    fn offer(&self) -> Option<PriceOffer> {
        let (currency, interval) = self.currency.zip(self.interval)?;
        Some(PriceOffer { currency, recurrence_interval: interval })
    }

    fn plan(&self) -> Result<Key> {
        self.plan.clone().ok_or_else(|| Error::invalid("plan", "is required"))
    }
}

async fn submit(
    request: hosted::Request,
    State(core): State<Core>,
    Path(app): Path<AppId>,
    Form(form): Form<PlanForm>,
) -> Result<PlanPage> {
    let visit = Visit::by_cookie(&core, &request, app).await?;
    visit.check_form(&core, &request, &form.csrf)?;
    let done = act(&core, &request, &visit.visitor, &form).await;
    match done {
        Ok(None) => Ok(PlanPage(Reply::see(path(app)))),
        Ok(Some(location)) if location.starts_with(&*core.base_url) => Ok(PlanPage(Reply::see(location))),
        // A form may not lead to another origin, and which one a provider uses is not known beforehand: a link may.
        Ok(Some(location)) => Ok(PlanPage(Reply::page(visit.way_to(&location)))),
        Err(error) if matches!(error.code(), Code::InvalidCredential | Code::Internal) => Err(error),
        Err(error) => {
            let visit = Visit::by_cookie(&core, &request, app).await?;
            Ok(PlanPage(Reply::page(visit.page(Some(&error))?)))
        }
    }
}

/// Where to go next, if not to the page itself.
async fn act(core: &Core, request: &hosted::Request, visitor: &Visitor, form: &PlanForm) -> Result<Option<String>> {
    let (app, tenant, author) = (visitor.app.id, visitor.tenant, visitor.author(request.scope()));
    match form.action {
        Action::Cancel => core.billing.cancel(&author, app, tenant).await.map(|_| None),
        Action::Reactivate => core.billing.reactivate(&author, app, tenant).await.map(|_| None),
        Action::Manage => core.billing.portal(&author, app, tenant).await,
        Action::Trial => {
            let plan = form.plan()?;
            let started = core.db.by(&author).write(move |tx| {
                let app = apps::get(tx, app)?;
                subscriptions::start_trial(tx, &app, tenant, &plan)
            });
            started.await.map(|_| None)
        }
        Action::Take => take(core, visitor, &author, form).await,
    }
}

async fn take(core: &Core, visitor: &Visitor, author: &kernel::Author, form: &PlanForm) -> Result<Option<String>> {
    let (app, tenant, plan, offer) = (visitor.app.id, visitor.tenant, form.plan()?, form.offer());
    let key = plan.clone();
    let read = core.db.read(move |tx| {
        let running = subscriptions::find(tx, app, tenant)?;
        let at_provider = running.is_some_and(|found| found.agreement.runs_at_provider());
        let free = catalog::find_plan_by_key(tx, app, &key)?.is_some_and(|plan| plan.is_free());
        Ok(free || at_provider)
    });
    if read.await? {
        return core.billing.change(author, (app, tenant), plan.to_string(), offer).await.map(|()| None);
    }
    let back: Option<WebUrl> = format!("{}{}", core.base_url, path(app)).parse().ok();
    let request = CheckoutRequest { plan_key: plan, price_offer: offer, success_url: back.clone(), cancel_url: back };
    Ok(core.billing.checkout(author, (app, tenant), move |_| Ok(request.clone())).await?.checkout_url)
}

/// Somebody on the page, and all that it is made from.
struct Visit {
    visitor: Visitor,
    csrf: String,
    workspace: String,
    subscription: Option<Subscription>,
    plans: Vec<Plan>,
    brand: Brand,
    words: Translations,
}

impl Visit {
    async fn by_cookie(core: &Core, request: &hosted::Request, app: AppId) -> Result<Self> {
        let jar = Jar::new(app, &core.base_url);
        let cookie = jar.read(request.headers(), Cookie::Portal).ok_or_else(refused)?.to_owned();
        Self::of(core, request, app, &cookie).await
    }

    async fn of(core: &Core, request: &hosted::Request, app: AppId, cookie: &str) -> Result<Self> {
        let app = core.tenancy.apps.find(app).await?.ok_or_else(|| Error::not_found("app"))?;
        let cookie = cookie.to_owned();
        let read = core.db.snapshot(move |tx| {
            let visitor = visitor(tx, &app, &cookie)?;
            let (app, tenant) = (visitor.app.id, visitor.tenant);
            Ok(Self {
                csrf: String::new(),
                workspace: workspaces::get(tx, app, tenant)?.name,
                subscription: subscriptions::find(tx, app, tenant)?,
                plans: catalog::plans::list(tx, app, Page::ALL)?,
                brand: branding::brand(tx, &visitor.app)?,
                words: branding::translations(tx, app)?,
                visitor,
            })
        });
        let mut visit = read.await?;
        let words = visit.words.clone();
        let language = words.get("en").to_owned();
        let say: Words = Arc::new(move |text| words.get(text).to_owned());
        let scope = request.scope();
        scope.set_app(visit.visitor.app.id);
        scope.set_page(PageSetting { brand: visit.brand.clone(), language, words: say, way_back: None });
        visit.csrf = core.keyring.fingerprint(&visit.visitor.form_context(), &visit.visitor.cookie);
        Ok(visit)
    }

    /// 403 unless the form was sent from this page, by this browser, and its visitor may change the plan.
    fn check_form(&self, core: &Core, request: &hosted::Request, csrf: &str) -> Result<()> {
        let Visitor { cookie, .. } = &self.visitor;
        let is_foreign = request.headers().get("sec-fetch-site").is_some_and(|site| site == "cross-site");
        if is_foreign || !core.keyring.matches_fingerprint(&self.visitor.form_context(), cookie, csrf) {
            let message = "This form has expired. Go back, reload the page and try again.";
            return Err(Error::new(Code::FormRejected, message));
        }
        if self.visitor.holds("TENANT_WRITE") {
            return Ok(());
        }
        Err(Error::new(Code::MissingPrivilege, "Your role does not allow you to change the plan."))
    }

    fn say(&self, text: &str) -> String {
        self.words.get(text).replace("{appName}", &self.brand.app_name)
    }

    fn form(&self, action: &str) -> PostForm {
        PostForm::new(&path(self.visitor.app.id)).hidden("csrf", &self.csrf).hidden("action", action)
    }

    fn page(&self, failed: Option<&Error>) -> Result<HostedPage> {
        if !self.visitor.holds("TENANT_READ") {
            return Err(Error::new(Code::MissingPrivilege, "Your role does not allow you to see the plan."));
        }
        let mut page = HostedPage::new(&self.brand, &self.say("Choose a plan")).language(self.words.get("en"));
        if let Some(error) = failed {
            page = page.status(web::status_of(error.code().kind())).alert(&self.say(error.public()));
        }
        page = self.standing(page.paragraph(&self.workspace));
        let may_change = self.visitor.holds("TENANT_WRITE");
        for plan in &self.plans {
            page = page.heading(&plan.name);
            if !plan.description.is_empty() {
                page = page.paragraph(&plan.description);
            }
            page = if may_change { self.choices(page, plan) } else { self.prices(page, plan) };
        }
        if may_change {
            page = self.of_the_subscription(page);
        } else {
            page = page.aside(&self.say("Your role does not allow you to change the plan."));
        }
        Ok(match &self.visitor.app.profile.ui_url {
            Some(address) => page.link("", &self.say("Open {appName}"), address),
            None => page,
        })
    }

    fn running(&self) -> Option<&Agreement> {
        self.subscription.as_ref().map(|found| &found.agreement).filter(|agreement| !agreement.is_over())
    }

    /// Which plan it is, and until when.
    fn standing(&self, page: HostedPage) -> HostedPage {
        let Some(agreement) = self.running() else {
            return page.paragraph(&self.say("You have no plan yet."));
        };
        let dated = |text: &str, at: Option<Timestamp>| {
            let day: String = at.map(|at| at.to_string()).unwrap_or_default();
            self.say(text).replace("{date}", day.split('T').next().unwrap_or_default())
        };
        let page = page.paragraph(&self.say("Your plan is {plan}.").replace("{plan}", &agreement.bought.plan.name));
        let page = match agreement.status() {
            Status::Trial => page.paragraph(&dated("Your trial ends on {date}.", agreement.ends_at())),
            Status::CancelAtPeriodEnd => page.paragraph(&dated("It ends on {date}.", agreement.ends_at())),
            Status::PastDue => page.alert(&self.say("The last payment failed.")),
            Status::Active | Status::Canceled => page,
        };
        match &agreement.scheduled {
            Some(change) => {
                let text = dated("It changes to {plan} on {date}.", Some(change.at));
                page.paragraph(&text.replace("{plan}", &change.plan.name))
            }
            None => page,
        }
    }

    fn price(&self, price: &catalog::Price) -> String {
        format!("{} {} / {}", price.amount.to_major(), price.amount.currency, self.say(price.interval.as_str()))
    }

    fn prices(&self, page: HostedPage, plan: &Plan) -> HostedPage {
        plan.prices.iter().fold(page, |page, price| page.paragraph(&self.price(price)))
    }

    /// A button for each price that is not paid already, and for the trial.
    fn choices(&self, page: HostedPage, plan: &Plan) -> HostedPage {
        let bought = self.running().filter(|agreement| agreement.bought.plan.key == plan.key);
        let form = |action: &str| self.form(action).hidden("plan", &plan.key);
        if plan.is_free() {
            return match bought {
                Some(_) => page.aside(&self.say("This is your plan.")),
                None => page.form(&form("take").button(&self.say("Select"))),
            };
        }
        let is_trial = bought.is_some_and(|agreement| agreement.trial_until().is_some());
        let mut page = page;
        for price in &plan.prices {
            let is_own = |agreement: &Agreement| {
                let own = agreement.bought.price;
                own.is_some_and(|own| (own.amount, own.interval) == (price.amount, price.interval)) && !is_trial
            };
            page = if bought.is_some_and(is_own) {
                page.paragraph(&self.price(price)).aside(&self.say("This is your plan."))
            } else {
                let form = form("take")
                    .hidden("currency", price.amount.currency.code())
                    .hidden("interval", price.interval.as_str());
                page.form(&form.button(&self.price(price)))
            };
        }
        let days = plan.trial_days.filter(|_| plan.trial && self.running().is_none_or(|own| !own.is_paid()));
        match days {
            Some(days) => {
                let label = self.say("Try it for {days} days").replace("{days}", &days.to_string());
                page.form(&form("trial").button(&label).quiet())
            }
            None => page,
        }
    }

    fn of_the_subscription(&self, page: HostedPage) -> HostedPage {
        let Some(agreement) = self.running() else { return page };
        let page = if agreement.runs_at_provider() {
            page.form(&self.form("manage").button(&self.say("Payment details")).quiet())
        } else {
            page
        };
        match agreement.status() {
            Status::CancelAtPeriodEnd => {
                page.form(&self.form("reactivate").button(&self.say("Continue subscription")).quiet())
            }
            _ => page.form(&self.form("cancel").button(&self.say("Cancel subscription")).quiet()),
        }
    }

    /// To the provider's own pages.
    fn way_to(&self, location: &str) -> HostedPage {
        HostedPage::new(&self.brand, &self.say("Payment")).language(self.words.get("en")).link(
            &self.say("Payment takes place on another page."),
            &self.say("Continue"),
            location,
        )
    }
}
