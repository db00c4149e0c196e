//! Apps that leave in an archive and come out of one.

use ::store::Tx;
use kernel::{AppId, Code, Error, Result};
use spine::emit;

use super::{App, AppDirectory, get, put_on_commit, store};
use crate::{
    facts::{AppExported, AppImported, AppMoved},
    locks::Lock,
};

/// What an archive holds beside the app itself.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub rows: u64,
    pub files: u64,
}

/// 409 when there is such an app, or one with its domain. Nobody makes the app before `tx` ends.
pub fn refuse_known(tx: &mut Tx<'_>, id: AppId, domain: &str) -> Result<()> {
    tx.lock(&Lock::App(id))?;
    if store::exists(tx, id)? {
        return Err(Error::new(Code::Conflict, format!("The app {id} exists already. Nothing was imported.")));
    }
    if store::has_number(tx, id)? {
        let message = format!("The id {id} collides with that of another app here. Nothing was imported.");
        return Err(Error::new(Code::Conflict, message));
    }
    if store::has_domain(tx, domain)? {
        let message = format!("Another app already has the domain {domain}. Nothing was imported.");
        return Err(Error::new(Code::DomainTaken, message));
    }
    Ok(())
}

/// The app as an archive's rows describe it, which nobody else sees yet.
pub fn described(tx: &mut Tx<'_>, id: AppId) -> Result<App> {
    let unfit = || Error::invalid("archive", "does not describe its app");
    let domain = store::domain_of(tx, id)?.ok_or_else(unfit)?;
    // What cannot be read would keep every node from starting.
    let app = get(tx, id).map_err(|error| unfit().with_source(error))?;
    if app.profile.domain == domain { Ok(app) } else { Err(unfit()) }
}

pub fn tell_exported(tx: &mut Tx<'_>, id: AppId, load: Load) -> Result<()> {
    let app = get(tx, id)?;
    emit(tx, id, &AppExported(moved(&app, load)))
}

/// The app's row was put in: from the commit on it is there for everybody.
pub(crate) fn arrive(tx: &mut Tx<'_>, directory: &AppDirectory, id: AppId, load: Load) -> Result<App> {
    let app = described(tx, id)?;
    emit(tx, id, &AppImported(moved(&app, load)))?;
    put_on_commit(tx, directory, &app);
    Ok(app)
}

fn moved(app: &App, Load { rows, files }: Load) -> AppMoved {
    AppMoved { name: app.profile.name.clone(), domain: app.profile.domain.clone(), rows, files }
}
