//! The sandbox's portal: where a customer sees what is charged, changes the card, pays an open bill, cancels or continues.
//! Whoever has its address may use it, as with a provider's own.

use std::time::Duration;

use ::store::Tx;
use http::StatusCode;
use kernel::{AppId, Error, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{
    App, Tenancy, apps,
    branding::{self, Translations},
};
use vault::hash_token;
use web::{
    Anyone, Form, Path, Routes, State,
    pages::{Brand, HostedPage, PostForm},
};

use super::{
    card::{CardForm, Refused},
    page::PageOrRedirect,
};
use crate::{
    Billing,
    providers::{
        money::written,
        store::{self, Card, Chargeable},
    },
    subscriptions::{self, Status, Subscription},
};

const PATH: &str = "/cloud-views/sandbox/portal/{portal_id}";
/// How long a link that a person asked for works.
pub(crate) const OPEN_FOR: Duration = Duration::from_hours(1);

pub fn routes() -> Routes<Billing> {
    Routes::pages("Hosted pages").get(PATH, show, "Show what the sandbox charges a workspace").post(
        PATH,
        submit,
        "Change the card, cancel or continue in the sandbox",
    )
}

/// The address of a portal, which works for a while.
pub(crate) fn open(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: AppId,
    tenant: TenantId,
    works_for: Duration,
) -> Result<String> {
    let id = format!("bps_sandbox_{}", tx.entropy().base62(32));
    store::insert_portal(tx, app, tenant, &hash_token(&id), tx.now().plus(works_for))?;
    Ok(format!("{}/cloud-views/sandbox/portal/{id}", tenancy.base_url))
}

/// All that the page is made from.
struct Setting {
    app: App,
    tenant: TenantId,
    subscription: Option<Subscription>,
    card: Option<Card>,
    brand: Brand,
    words: Translations,
}

impl Setting {
    fn of(tx: &mut Tx<'_>, id: &str) -> Result<Self> {
        let missing = || Error::not_found("portal");
        let Chargeable { app, tenant } = store::portal(tx, &hash_token(id))?.ok_or_else(missing)?;
        let app = apps::get(tx, app).map_err(|_| missing())?;
        let subscription = subscriptions::find(tx, app.id, tenant)?;
        let card = store::card(tx, app.id, tenant)?;
        let (brand, words) = (branding::brand(tx, &app)?, branding::translations(tx, app.id)?);
        Ok(Self { app, tenant, subscription, card, brand, words })
    }
}

async fn show(State(billing): State<Billing>, Path(id): Path<String>) -> Result<HostedPage> {
    let named = id.clone();
    let setting = billing.tenancy.db.snapshot(move |tx| Setting::of(tx, &named)).await?;
    Ok(page(&id, &setting, &CardForm::default(), None))
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Card,
    Cancel,
    Reactivate,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PortalForm {
    action: Action,
    #[serde(flatten)]
    card: CardForm,
}

async fn submit(
    caller: Anyone,
    State(billing): State<Billing>,
    Path(id): Path<String>,
    Form(form): Form<PortalForm>,
) -> Result<PageOrRedirect> {
    let (named, sent, tenancy) = (id.clone(), form.clone(), billing.tenancy.clone());
    let done = billing.tenancy.db.by(&caller).write(move |tx| act(tx, &tenancy, &named, &sent)).await?;
    let Err(refused) = done else { return Ok(PageOrRedirect::Redirect(PATH.replace("{portal_id}", &id))) };
    let named = id.clone();
    let setting = billing.tenancy.db.snapshot(move |tx| Setting::of(tx, &named)).await?;
    Ok(PageOrRedirect::Page(Box::new(page(&id, &setting, &form.card, Some(refused)))))
}

fn act(tx: &mut Tx<'_>, tenancy: &Tenancy, id: &str, form: &PortalForm) -> Result<Result<(), Refused>> {
    let Setting { app, tenant, .. } = Setting::of(tx, id)?;
    super::catch_up(tx, tenancy, app.id, tenant)?;
    match form.action {
        Action::Cancel => subscriptions::cancel(tx, &app, tenant).map(|_| Ok(())),
        Action::Reactivate => subscriptions::reactivate(tx, &app, tenant).map(|_| Ok(())),
        Action::Card => change_card(tx, tenancy, &app, tenant, &form.card),
    }
}

/// The new card pays what is open at once.
fn change_card(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    tenant: TenantId,
    typed: &CardForm,
) -> Result<Result<(), Refused>> {
    let accepted = match typed.accept(tx.now()) {
        Ok(accepted) => accepted,
        Err(refused) => return Ok(Err(refused)),
    };
    let running = subscriptions::running(tx, app, tenant)?;
    let (Some(subscription), Some(card)) = (running, store::card(tx, app.id, tenant)?) else { return Ok(Ok(())) };
    let card = Card { last4: accepted.last4, pays: accepted.pays_renewals, ..card };
    store::put_card(tx, app.id, tenant, &card)?;
    if subscription.agreement.dunning().is_some() {
        super::charge(tx, tenancy, app, subscription, Some(true))?;
    }
    Ok(Ok(()))
}

fn page(id: &str, setting: &Setting, typed: &CardForm, refused: Option<Refused>) -> HostedPage {
    let Setting { app, brand, words, .. } = setting;
    let mut page = HostedPage::new(brand, words.get("Your subscription"))
        .notice(words.get("This is the sandbox: no money is moved, and only test cards work."));
    page = match (&setting.subscription, &setting.card) {
        (Some(subscription), Some(card)) => charged(page, words, subscription, card),
        _ => page.paragraph(words.get("Nothing is being paid for.")),
    };
    let form = |action: &str| PostForm::new(id).hidden("action", action);
    if setting.card.is_some() {
        let status = setting.subscription.as_ref().map(|subscription| subscription.agreement.status());
        let label = if status == Some(Status::PastDue) { "Pay now with this card" } else { "Change card" };
        page = page.form(&typed.fields(form("card"), words, refused).button(words.get(label)));
        page = match status {
            Some(Status::CancelAtPeriodEnd) => {
                page.form(&form("reactivate").button(words.get("Continue subscription")).quiet())
            }
            _ => page.form(&form("cancel").button(words.get("Cancel subscription")).quiet()),
        };
    }
    if refused.is_some() {
        page = page.status(StatusCode::BAD_REQUEST);
    }
    match &app.profile.ui_url {
        Some(location) => page.link("", words.get("Back"), location),
        None => page,
    }
}

/// What is paid for, by which card, and what comes next.
fn charged(page: HostedPage, words: &Translations, subscription: &Subscription, card: &Card) -> HostedPage {
    let agreement = &subscription.agreement;
    let price = agreement.bought.price.map(|price| format!("{} / {}", written(price.amount), price.interval));
    let mut page = page.highlight(&agreement.bought.plan.name).paragraph(&price.unwrap_or_default());
    page = page.paragraph(&words.get("Card ending in {last4}").replace("{last4}", &card.last4));
    let dated = |text: &str, at: Timestamp| words.get(text).replace("{date}", &date(at));
    match (agreement.dunning(), agreement.ends_at(), card.charges.at) {
        (Some(_), ..) => page.alert(words.get("The last payment failed.")),
        (None, Some(at), _) => page.paragraph(&dated("Ends on {date}", at)),
        (None, None, Some(at)) => page.paragraph(&dated("Next payment on {date}", at)),
        (None, None, None) => page,
    }
}

/// The day alone.
pub fn date(at: Timestamp) -> String {
    at.to_string().chars().take_while(|letter| *letter != 'T').collect()
}
