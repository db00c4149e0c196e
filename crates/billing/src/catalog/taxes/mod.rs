//! Taxes: what is added to a price by the customer's country.

pub mod http;
mod rules;
mod store;

use ::store::Tx;
use kernel::{AppId, Country, Error, Page, Result, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use spine::emit;
use tenancy::{apps, facts::Change};

pub use rules::{NewTax, TaxChange};

use crate::facts::TaxChanged;

id_kinds! {
    TaxId(TaxKind) = "tax";
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tax {
    pub id: TaxId,
    pub country_code: Country,
    pub name: String,
    #[serde(serialize_with = "as_written")]
    #[schemars(range(min = 0, max = 100))]
    pub percentage: f64,
    pub created_at: Timestamp,
}

/// Whole percentages without a decimal point, as they came in.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn as_written<S: Serializer>(percentage: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if percentage.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number between 0 and 100")]
        return serializer.serialize_i64(*percentage as i64);
    }
    serializer.serialize_f64(*percentage)
}

/// Newest first.
pub fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Tax>> {
    store::list(tx, app, page)
}

pub fn get(tx: &mut Tx<'_>, app: AppId, id: TaxId) -> Result<Tax> {
    store::find(tx, app, id)?.ok_or_else(not_found)
}

pub fn create(tx: &mut Tx<'_>, app: AppId, new: &NewTax) -> Result<Tax> {
    apps::hold(tx, app)?;
    let tax = Tax {
        id: tx.new_id(),
        country_code: new.country_code,
        name: new.name.trim().to_owned(),
        percentage: new.percentage,
        created_at: tx.now(),
    };
    store::insert(tx, app, &tax)?;
    tell(tx, app, &tax, Change::Created)?;
    Ok(tax)
}

pub fn update(tx: &mut Tx<'_>, app: AppId, id: TaxId, change: &TaxChange) -> Result<Tax> {
    apps::hold(tx, app)?;
    let tax = change.applied_to(get(tx, app, id)?);
    store::update(tx, app, &tax)?;
    tell(tx, app, &tax, Change::Updated)?;
    Ok(tax)
}

pub fn delete(tx: &mut Tx<'_>, app: AppId, id: TaxId) -> Result<()> {
    apps::hold(tx, app)?;
    let tax = get(tx, app, id)?;
    store::delete(tx, app, id)?;
    tell(tx, app, &tax, Change::Deleted)
}

fn tell(tx: &mut Tx<'_>, app: AppId, tax: &Tax, change: Change) -> Result<()> {
    emit(tx, app, &TaxChanged { tax_id: tax.id, name: tax.name.clone(), change })
}

fn not_found() -> Error {
    Error::not_found("tax")
}
