//! What a tax must look like. Pure.

use kernel::{Country, Name};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Given, Validate};

use super::Tax;

/// The body of `POST /account/payments/tax`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewTax {
    pub country_code: Country,
    pub name: Name,
    #[schemars(range(min = 0, max = 100))]
    pub percentage: f64,
}

/// The body of `PUT /account/payments/tax/{tax_id}`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaxChange {
    pub country_code: Given<Country>,
    pub name: Given<Name>,
    #[schemars(range(min = 0, max = 100))]
    pub percentage: Given<f64>,
}

impl Validate for NewTax {}
impl Validate for TaxChange {}

impl TaxChange {
    pub(super) fn applied_to(&self, tax: Tax) -> Tax {
        Tax {
            country_code: self.country_code.or(tax.country_code),
            name: self.name.clone().or(tax.name),
            percentage: self.percentage.or(tax.percentage),
            ..tax
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_countries_are_checked() {
        for (country, percentage, fits) in [
            ("DE", "0", true),
            ("de", "19", true),
            ("CH", "8.1", true),
            ("US", "100", true),
            ("DE", "-0.1", false),
            ("DE", "100.01", false),
            ("DE", "\"19\"", false),
            ("XX", "19", false),
        ] {
            let body = format!(r#"{{"countryCode":"{country}","name":"VAT","percentage":{percentage}}}"#);
            assert_eq!(web::from_json::<NewTax>(body.as_bytes()).is_ok(), fits, "{body}");
        }
    }
}
