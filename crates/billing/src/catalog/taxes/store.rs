//! The SQL of taxes.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Page, Result};

use super::{Tax, TaxId};

row! { Tax = "taxes" { id, country_code, name, percentage, created_at } }

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Tax>> {
    tx.all(
        sql!("SELECT ", Tax::COLUMNS, " FROM taxes WHERE app_id = $1 ORDER BY id DESC LIMIT $2 OFFSET $3"),
        &args![app, page.limit_or_all(), page.offset()],
    )
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, id: TaxId) -> Result<Option<Tax>> {
    tx.opt(sql!("SELECT ", Tax::COLUMNS, " FROM taxes WHERE app_id = $1 AND id = $2"), &args![app, id])
}

pub(super) fn insert(tx: &mut Tx<'_>, app: AppId, tax: &Tax) -> Result<()> {
    tx.run(
        "INSERT INTO taxes (id, app_id, country_code, name, percentage, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
        &args![tax.id, app, tax.country_code, tax.name, tax.percentage, tax.created_at],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, tax: &Tax) -> Result<()> {
    tx.run(
        "UPDATE taxes SET country_code = $3, name = $4, percentage = $5 WHERE app_id = $1 AND id = $2",
        &args![app, tax.id, tax.country_code, tax.name, tax.percentage],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, id: TaxId) -> Result<()> {
    tx.run("DELETE FROM taxes WHERE app_id = $1 AND id = $2", &args![app, id])
}
