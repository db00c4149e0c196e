//! The plan page: which plan the workspace is on, which there are, and a button for each.

use axum::response::{IntoResponse, Response};
use billing::{
    catalog::{self, Plan, PriceOffer},
    providers::checkout::CheckoutRequest,
    subscriptions::{self, Agreement, Status, Subscription},
};
use http::StatusCode;
use identity::hosted::{self, Reply};
use kernel::{AppId, Code, Currency, Error, Key, Page, Result, Timestamp, WebUrl};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Tx;
use tenancy::apps;
use web::{
    Describe, Form, Operation, Params, Path, Routes, State,
    pages::{HostedPage, PostForm},
};

use super::{
    Door, Visitor,
    entrance::{Arrival, CodeQuery},
    visit::Visit,
};
use crate::Core;

const ENTRANCE: &str = "/cloud-views/subscription-portal/selectPlan";
const PATH: &str = "/cloud-views/portal/{app_id}/plan";
const MAY_NOT_CHANGE: &str = "Your role does not allow you to change the plan.";

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

pub(super) fn path(app: AppId) -> String {
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

async fn select_plan(
    request: hosted::Request,
    State(core): State<Core>,
    Params(CodeQuery { code }): Params<CodeQuery>,
) -> Result<PlanPage> {
    let Arrival { app, cookie, kept } = Arrival::by_code(&core, &request, code, Door::Plan).await?;
    let plans = Plans::of(Visit::of(&core, &request, app, &cookie, Content::read).await?);
    Ok(PlanPage(Reply::page(plans.page(None)?).with_cookies(kept)))
}

async fn show(request: hosted::Request, State(core): State<Core>, Path(app): Path<AppId>) -> Result<PlanPage> {
    let plans = Plans::open(&core, &request, app).await?;
    Ok(PlanPage(Reply::page(plans.page(None)?)))
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
    let plans = Plans::open(&core, &request, app).await?;
    plans.visit.check_form(&core, &form.csrf)?;
    plans.visit.visitor.require("TENANT_WRITE", MAY_NOT_CHANGE)?;
    let done = act(&core, &request, &plans.visit.visitor, &form).await;
    match done {
        Ok(None) => Ok(PlanPage(Reply::see(path(app)))),
        Ok(Some(location)) if location.starts_with(&*core.base_url) => Ok(PlanPage(Reply::see(location))),
        // A form may not lead to another origin, and which one a provider uses is not known beforehand: a link may.
        Ok(Some(location)) => Ok(PlanPage(Reply::page(plans.way_to(&location)))),
        Err(error) if matches!(error.code(), Code::InvalidCredential | Code::Internal) => Err(error),
        Err(error) => {
            let plans = Plans::open(&core, &request, app).await?;
            Ok(PlanPage(Reply::page(plans.page(Some(&error))?)))
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

/// What the page shows.
struct Content {
    subscription: Option<Subscription>,
    plans: Vec<Plan>,
}

impl Content {
    fn read(tx: &mut Tx<'_>, visitor: &Visitor) -> Result<Self> {
        let (app, tenant) = (visitor.app.id, visitor.tenant);
        Ok(Self {
            subscription: subscriptions::find(tx, app, tenant)?,
            plans: catalog::plans::list(tx, app, Page::ALL)?,
        })
    }
}

/// Somebody on the page, and all that it is made from.
struct Plans {
    visit: Visit,
    content: Content,
}

impl Plans {
    async fn open(core: &Core, request: &hosted::Request, app: AppId) -> Result<Self> {
        Ok(Self::of(Visit::open(core, request, app, Content::read).await?))
    }

    fn of((visit, content): (Visit, Content)) -> Self {
        Self { visit, content }
    }

    fn say(&self, text: &str) -> String {
        self.visit.say(text)
    }

    fn form(&self, action: &str) -> PostForm {
        self.visit.form(&path(self.visit.visitor.app.id)).hidden("action", action)
    }

    fn page(&self, failed: Option<&Error>) -> Result<HostedPage> {
        let visitor = &self.visit.visitor;
        visitor.require("TENANT_READ", "Your role does not allow you to see the plan.")?;
        let mut page = self.visit.page("Choose a plan", &path(visitor.app.id));
        if let Some(error) = failed {
            page = page.status(web::status_of(error.code().kind())).alert(&self.say(error.public()));
        }
        page = self.standing(page.paragraph(&self.visit.workspace));
        let may_change = visitor.holds("TENANT_WRITE");
        for plan in &self.content.plans {
            page = page.heading(&plan.name);
            if !plan.description.is_empty() {
                page = page.paragraph(&plan.description);
            }
            page = if may_change { self.choices(page, plan) } else { self.prices(page, plan) };
        }
        if may_change {
            page = self.of_the_subscription(page);
        } else {
            page = page.aside(&self.say(MAY_NOT_CHANGE));
        }
        Ok(self.visit.with_way_out(page))
    }

    fn running(&self) -> Option<&Agreement> {
        self.content.subscription.as_ref().map(|found| &found.agreement).filter(|agreement| !agreement.is_over())
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
        self.visit.bare_page("Payment").link(
            &self.say("Payment takes place on another page."),
            &self.say("Continue"),
            location,
        )
    }
}
