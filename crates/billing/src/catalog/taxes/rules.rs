//! What a tax must look like. Pure.

use kernel::{Country, Problems};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Given, Validate};

use super::Tax;

/// The body of `POST /account/payments/tax`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewTax {
    pub country_code: Country,
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub name: String,
    #[schemars(range(min = 0, max = 100))]
    pub percentage: f64,
}

/// The body of `PUT /account/payments/tax/{tax_id}`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaxChange {
    pub country_code: Given<Country>,
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub name: Given<String>,
    #[schemars(range(min = 0, max = 100))]
    pub percentage: Given<f64>,
}

impl Validate for NewTax {
    fn validate(&self, problems: &mut Problems) {
        problems.text("name", &self.name);
        percentage(problems, self.percentage);
    }
}

impl Validate for TaxChange {
    fn validate(&self, problems: &mut Problems) {
        self.name.value().inspect(|name| problems.text("name", name));
        self.percentage.value().inspect(|value| percentage(problems, **value));
    }
}

fn percentage(problems: &mut Problems, value: f64) {
    problems.check("percentage", (0.0..=100.0).contains(&value), "must be between 0 and 100");
}

impl TaxChange {
    pub(super) fn applied_to(&self, tax: Tax) -> Tax {
        Tax {
            country_code: self.country_code.or(tax.country_code),
            name: self.name.value().map_or(tax.name, |name| name.trim().to_owned()),
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
