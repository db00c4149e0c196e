//! The sandbox's hosted checkout: a plain form that takes a test card.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use kernel::{Code, Error, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Tx;
use tenancy::{
    App,
    branding::{self, Translations},
};
use web::{
    Anyone, Describe, Failure, Form, Operation, Path, Routes, State,
    pages::{Brand, Field, FieldKind, HostedPage, PostForm},
};

use super::TestCard;
use crate::{
    Billing,
    catalog::taxes,
    providers::{
        checkout::{self, CheckoutSession},
        money::Bill,
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
pub struct CardForm {
    card_number: String,
    expiry: String,
    cvc: String,
    country: String,
}

/// All that the page is made from.
struct Setting {
    app: App,
    session: CheckoutSession,
    brand: Brand,
    words: Translations,
    /// Whether the app has taxes, so that the country matters.
    taxed: bool,
}

fn setting(tx: &mut Tx<'_>, id: &str) -> Result<Setting> {
    let (app, session) = checkout::find(tx, id)?;
    let taxed = !taxes::list(tx, app.id, kernel::Page { limit: Some(1), offset: None })?.is_empty();
    Ok(Setting { brand: branding::brand(tx, &app)?, words: branding::translations(tx, app.id)?, taxed, app, session })
}

async fn show(State(billing): State<Billing>, Path(id): Path<String>) -> Result<HostedPage> {
    let (setting, now) = billing.tenancy.db.snapshot(move |tx| Ok((setting(tx, &id)?, tx.now()))).await?;
    Ok(page(&setting, &CardForm::default(), None, now))
}

/// What is wrong with a form.
struct Refused {
    field: &'static str,
    message: &'static str,
}

async fn submit(
    caller: Anyone,
    State(billing): State<Billing>,
    Path(id): Path<String>,
    Form(form): Form<CardForm>,
) -> Result<PageOrRedirect> {
    let (session, typed) = (id.clone(), form.clone());
    let paid = billing.tenancy.db.by(&caller).write(move |tx| pay(tx, &session, &typed)).await;
    let refused = match paid {
        Ok(Ok(Some(location))) => return Ok(PageOrRedirect::Redirect(location)),
        Ok(Ok(None)) => None,
        Ok(Err(refused)) => Some(refused),
        // Somebody was quicker: the page says so.
        Err(error) if error.code() == Code::Conflict => None,
        Err(error) if error.code() == Code::SubscriptionRunning => {
            Some(Refused { field: "cardNumber", message: "Another plan is already being paid for." })
        }
        Err(error) => return Err(error),
    };
    let (setting, now) = billing.tenancy.db.snapshot(move |tx| Ok((setting(tx, &id)?, tx.now()))).await?;
    Ok(PageOrRedirect::Page(Box::new(page(&setting, &form, refused.as_ref(), now))))
}

/// Where to go after the payment; or what is wrong.
fn pay(tx: &mut Tx<'_>, id: &str, form: &CardForm) -> Result<Result<Option<String>, Refused>> {
    let Setting { app, session, taxed, .. } = setting(tx, id)?;
    if session.paid_at.is_some() || session.expires_at <= tx.now() {
        return Ok(Ok(session.paid_at.and_then(|_| session.redirect_uri(&app))));
    }
    let digits: String = form.card_number.chars().filter(char::is_ascii_digit).collect();
    if let Some(refused) = problem(form, &digits, taxed, tx.now()) {
        return Ok(Err(refused));
    }
    let kind = TestCard::of(&digits);
    if kind == TestCard::Declined {
        return Ok(Err(Refused { field: "cardNumber", message: "Your card was declined." }));
    }
    let tax = super::tax_for(tx, app.id, &form.country.trim().to_ascii_uppercase())?;
    super::pay(tx, &app, &session, (kind, &digits), tax)?;
    Ok(Ok(session.redirect_uri(&app)))
}

/// The first thing that is wrong with what was typed.
fn problem(form: &CardForm, digits: &str, taxed: bool, now: Timestamp) -> Option<Refused> {
    let refused = |field, message| Some(Refused { field, message });
    let three_digits = form.cvc.trim().len() == 3 && form.cvc.trim().bytes().all(|byte| byte.is_ascii_digit());
    if !(12..=19).contains(&digits.len()) {
        return refused("cardNumber", "Enter the number of a card.");
    }
    if !is_future(&form.expiry, now) {
        return refused("expiry", "Enter a month in the future, as MM/YY.");
    }
    if !three_digits {
        return refused("cvc", "Enter three digits.");
    }
    if taxed && form.country.trim().parse::<kernel::Country>().is_err() {
        return refused("country", "Enter a country's two-letter code, such as DE.");
    }
    None
}

/// `MM/YY` or `MM/YYYY`, this month included.
fn is_future(expiry: &str, now: Timestamp) -> bool {
    let Some((month, year)) = expiry.split_once('/') else { return false };
    let (month, year) = (month.trim(), year.trim());
    let full_year = if year.len() == 2 { format!("20{year}") } else { year.to_owned() };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(month) || !digits(&full_year) || month.is_empty() || month.len() > 2 || full_year.len() != 4 {
        return false;
    }
    let begins: Result<Timestamp, _> = format!("{full_year}-{month:0>2}-01T00:00:00Z").parse();
    begins.is_ok_and(|begins| begins.plus_months(1) > now)
}

fn page(setting: &Setting, form: &CardForm, refused: Option<&Refused>, now: Timestamp) -> HostedPage {
    let Setting { app, session, brand, words, taxed } = setting;
    let plan = &session.bought.plan.name;
    if session.paid_at.is_some() || session.expires_at <= now {
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
    let price = session.price;
    let mut page = HostedPage::new(brand, plan)
        .notice(words.get("This is the sandbox: no money is moved, and only test cards work."))
        .paragraph(&format!("{} {} / {}", price.amount.to_major(), price.amount.currency, price.interval));
    if *taxed {
        let taxed = Bill::new(price.amount, None).total().to_major();
        let text = words.get("Tax is added by your country. Without tax: {total}");
        page = page.paragraph(&text.replace("{total}", &format!("{taxed} {}", price.amount.currency)));
    }
    let error =
        |field: &str| refused.filter(|refused| refused.field == field).map(|refused| words.get(refused.message));
    let field = |name: &'static str, label: &str, value: &str| {
        Field::new(FieldKind::Text, name, words.get(label)).value(value).error(error(name))
    };
    let mut inputs = PostForm::new(&session.id)
        .field(field("cardNumber", "Card number", &form.card_number).focused())
        .field(field("expiry", "Expiry (MM/YY)", &form.expiry))
        .field(field("cvc", "Security code", ""));
    if *taxed {
        inputs = inputs.field(field("country", "Country", &form.country));
    }
    page = page.form(&inputs.button(words.get("Pay")));
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
