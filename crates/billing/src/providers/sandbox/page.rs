//! The sandbox's hosted checkout: a plain form that takes a test card.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use kernel::{Code, Country, Error, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Tx;
use tenancy::{
    App,
    branding::{self, Translations},
    workspaces,
};
use web::{
    Anyone, Describe, Failure, Form, Operation, Path, Routes, State,
    pages::{Brand, HostedPage, PostForm},
};

use super::card::{CardForm, Refused, field};
use crate::{
    Billing,
    catalog::taxes::{self, Tax},
    providers::{
        checkout::{self, CheckoutSession},
        money::{Bill, written},
    },
};

const PATH: &str = "/cloud-views/sandbox/checkout/{session_id}";

pub fn routes() -> Routes<Billing> {
    Routes::pages("Hosted pages").get(PATH, show, "Show what is to be paid and ask for a test card").post(
        PATH,
        submit,
        "Pay with a test card",
    )
}

/// A page, or the way to the app's own.
pub enum PageOrRedirect {
    Page(Box<HostedPage>),
    Redirect(String),
}

impl IntoResponse for PageOrRedirect {
    fn into_response(self) -> Response {
        match self {
            Self::Page(page) => page.into_response(),
            Self::Redirect(location) => match HeaderValue::try_from(location) {
                Ok(location) => (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response(),
                Err(error) => Failure::from(Error::internal(error)).into_response(),
            },
        }
    }
}

impl Describe for PageOrRedirect {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "text/html");
    }
}

/// What somebody typed in.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckoutForm {
    #[serde(flatten)]
    card: CardForm,
    country: String,
    /// Asks for the total in a country, and pays nothing.
    total_for: Option<String>,
}

/// All that the page is made from.
struct Setting {
    app: App,
    session: CheckoutSession,
    brand: Brand,
    words: Translations,
    /// The app's taxes; the country matters only when there are any.
    taxes: Vec<Tax>,
    now: Timestamp,
}

impl Setting {
    fn of(tx: &mut Tx<'_>, id: &str) -> Result<Self> {
        let (app, session) = checkout::find(tx, id)?;
        let (brand, words) = (branding::brand(tx, &app)?, branding::translations(tx, app.id)?);
        Ok(Self { taxes: taxes::list(tx, app.id, kernel::Page::ALL)?, now: tx.now(), brand, words, app, session })
    }

    /// The country that was typed, when it matters; `None` when it is not one.
    fn country(&self, typed: &str) -> Option<Country> {
        typed.trim().to_ascii_uppercase().parse().ok().filter(|_| !self.taxes.is_empty())
    }

    fn tax(&self, country: Option<Country>) -> Option<&Tax> {
        self.taxes.iter().find(|tax| Some(tax.country_code) == country)
    }

    fn is_open(&self) -> bool {
        self.session.paid_at.is_none() && self.session.expires_at > self.now
    }
}

async fn show(State(billing): State<Billing>, Path(id): Path<String>) -> Result<HostedPage> {
    let setting = billing.tenancy.db.snapshot(move |tx| Setting::of(tx, &id)).await?;
    Ok(page(&setting, &CheckoutForm::default(), None))
}

async fn submit(
    caller: Anyone,
    State(billing): State<Billing>,
    Path(id): Path<String>,
    Form(mut form): Form<CheckoutForm>,
) -> Result<PageOrRedirect> {
    let refused = match form.total_for.take() {
        Some(country) => {
            form.country = country;
            None
        }
        None => {
            let (session, typed) = (id.clone(), form.clone());
            match billing.tenancy.db.by(&caller).write(move |tx| pay(tx, &session, &typed)).await {
                Ok(Ok(Some(location))) => return Ok(PageOrRedirect::Redirect(location)),
                Ok(Ok(None)) => None,
                Ok(Err(refused)) => Some(refused),
                Err(error) if error.code() == Code::SubscriptionRunning => {
                    Some(Refused::new("cardNumber", "Another plan is already being paid for."))
                }
                Err(error) => return Err(error),
            }
        }
    };
    let setting = billing.tenancy.db.snapshot(move |tx| Setting::of(tx, &id)).await?;
    Ok(PageOrRedirect::Page(Box::new(page(&setting, &form, refused))))
}

/// Where to go after the payment; or what is wrong. A form that arrives twice is one payment, and both lead to the same place:
/// whether it is paid is read under the workspace's lock.
fn pay(tx: &mut Tx<'_>, id: &str, form: &CheckoutForm) -> Result<Result<Option<String>, Refused>> {
    let (_, session) = checkout::find(tx, id)?;
    workspaces::lock(tx, session.tenant)?;
    let setting = Setting::of(tx, id)?;
    let Setting { app, session, .. } = &setting;
    if !setting.is_open() {
        return Ok(Ok(session.paid_at.and_then(|_| session.redirect_uri(app))));
    }
    let card = match form.card.accept(setting.now) {
        Ok(card) => card,
        Err(refused) => return Ok(Err(refused)),
    };
    let country = setting.country(&form.country);
    if country.is_none() && !setting.taxes.is_empty() {
        return Ok(Err(Refused::new("country", "Enter a country's two-letter code, such as DE.")));
    }
    super::pay(tx, app, session, &card, setting.tax(country).map(|tax| tax.percentage))?;
    Ok(Ok(session.redirect_uri(app)))
}

fn page(setting: &Setting, form: &CheckoutForm, refused: Option<Refused>) -> HostedPage {
    let Setting { app, session, brand, words, .. } = setting;
    let plan = &session.bought.plan.name;
    if !setting.is_open() {
        let text = if session.paid_at.is_some() {
            "This plan is paid for."
        } else {
            "This checkout has expired. Start again."
        };
        let page = HostedPage::new(brand, plan).paragraph(words.get(text));
        return match session.redirect_uri(app) {
            Some(location) => page.link("", words.get("Continue"), &location),
            None => page,
        };
    }
    let mut page = HostedPage::new(brand, plan)
        .notice(words.get("This is the sandbox: no money is moved, and only test cards work."));
    page = priced(page, setting, form);
    let mut inputs = form.card.fields(PostForm::new(&session.id), words, refused);
    if !setting.taxes.is_empty() {
        inputs = inputs.field(field(words, refused, "country", "Country").value(&form.country));
    }
    page = page.form(&inputs.button(words.get("Pay")));
    if !setting.taxes.is_empty() {
        let country = field(words, None, "totalFor", "Show the total for a country").value(&form.country);
        page = page.form(&PostForm::new(&session.id).field(country).button(words.get("Show total")).quiet());
    }
    if let Some(location) = session.redirect_uri(app) {
        page = page.form_target(&location);
    }
    if refused.is_some() {
        page = page.status(StatusCode::BAD_REQUEST);
    }
    match session.cancel_uri(app) {
        Some(location) => page.link("", words.get("Cancel"), &location),
        None => page,
    }
}

/// Price, tax and total, as far as they are known.
fn priced(page: HostedPage, setting: &Setting, form: &CheckoutForm) -> HostedPage {
    let (words, price) = (&setting.words, setting.session.price);
    let line = |label: &str, amount: &str| format!("{}: {amount}", words.get(label));
    let page = page.paragraph(&line("Price", &format!("{} / {}", written(price.amount), price.interval)));
    let country = setting.country(&form.country);
    if country.is_none() && !setting.taxes.is_empty() {
        let text = words.get("Tax is added by your country. Without tax: {total}");
        return page.paragraph(&text.replace("{total}", &written(price.amount)));
    }
    let tax = setting.tax(country);
    let bill = Bill::new(price.amount, tax.map(|tax| tax.percentage));
    let page = match (tax, bill.tax) {
        (Some(tax), Some(amount)) => {
            page.paragraph(&format!("{} ({} %): {}", tax.name, tax.percentage, written(amount)))
        }
        _ if !setting.taxes.is_empty() => {
            page.paragraph(&line("Tax", &written(kernel::Money::from_minor(0, price.amount.currency))))
        }
        _ => page,
    };
    page.highlight(&line("Total", &written(bill.total())))
}
