//! A test card as somebody types it in, on the checkout page and in the portal. Pure.

use kernel::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::branding::Translations;
use web::pages::{Field, FieldKind, PostForm};

/// What somebody typed in.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CardForm {
    card_number: String,
    expiry: String,
    cvc: String,
}

/// What is wrong with a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub field: &'static str,
    pub message: &'static str,
}

impl Refused {
    pub fn new(field: &'static str, message: &'static str) -> Self {
        Self { field, message }
    }
}

/// A card that pays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedCard {
    pub last4: String,
    /// Whether it goes on paying.
    pub pays_renewals: bool,
}

impl CardForm {
    /// The card, or the first thing that is wrong with it. Unknown cards are declined.
    pub fn accept(&self, now: Timestamp) -> Result<AcceptedCard, Refused> {
        let digits: String = self.card_number.chars().filter(char::is_ascii_digit).collect();
        let cvc = self.cvc.trim();
        if !(12..=19).contains(&digits.len()) {
            return Err(Refused::new("cardNumber", "Enter the number of a card."));
        }
        if !is_future(&self.expiry, now) {
            return Err(Refused::new("expiry", "Enter a month in the future, as MM/YY."));
        }
        if cvc.len() != 3 || !cvc.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Refused::new("cvc", "Enter three digits."));
        }
        let pays_renewals = match digits.as_str() {
            "4242424242424242" => true,
            "4000000000000341" => false,
            _ => return Err(Refused::new("cardNumber", "Your card was declined.")),
        };
        Ok(AcceptedCard { last4: digits.chars().skip(digits.len() - 4).collect(), pays_renewals })
    }

    /// The fields of a card, with what was typed and what was wrong with it. The security code never comes back.
    pub fn fields(&self, form: PostForm, words: &Translations, refused: Option<Refused>) -> PostForm {
        let field = |name, label, value: &str| field(words, refused, name, label).value(value);
        form.field(field("cardNumber", "Card number", &self.card_number).focused())
            .field(field("expiry", "Expiry (MM/YY)", &self.expiry))
            .field(field("cvc", "Security code", ""))
    }
}

/// A field of a form that may have been refused for it.
pub fn field(words: &Translations, refused: Option<Refused>, name: &'static str, label: &str) -> Field {
    let error = refused.filter(|refused| refused.field == name).map(|refused| words.get(refused.message));
    Field::new(FieldKind::Text, name, words.get(label)).error(error)
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
