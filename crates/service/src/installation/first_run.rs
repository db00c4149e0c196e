//! The first run: an empty installation gets an app with plans to start with, exactly once, whichever node comes first.

use ::store::{Db, Tx};
use kernel::Result;
use tenancy::{
    Tenancy, app_lifecycle,
    apps::{self, App},
};

use super::store;

const DONE: &str = "first_run";

/// What was made, for printing it once.
pub struct FirstRun {
    pub app: App,
    pub api_key: String,
}

pub async fn first_run(db: &Db, tenancy: &Tenancy) -> Result<Option<FirstRun>> {
    let tenancy = tenancy.clone();
    db.write(move |tx| set_up(tx, &tenancy)).await
}

fn set_up(tx: &mut Tx<'_>, tenancy: &Tenancy) -> Result<Option<FirstRun>> {
    tx.lock(&::store::WholeDatabase("installation"))?;
    if !store::insert(tx, DONE, "done")? {
        return Ok(None);
    }
    let created = app_lifecycle::create(tx, tenancy, &apps::first_app(&tenancy.base_url))?;
    billing::seed_first_plans(tx, created.app.id)?;
    Ok(Some(FirstRun { app: created.app, api_key: created.api_key }))
}
