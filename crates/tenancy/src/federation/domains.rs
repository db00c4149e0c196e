//! The domains of a connection: addresses in them are sent there although nobody knows them yet. A domain belongs to one connection of an
//! app.

use ::store::{Arg, Column, ToArg, Tx, Value, WrongType, args};
use kernel::{AppId, Code, Error, HostName, Result};
use schemars::JsonSchema;
use serde::Serialize;

use super::{ConnectionId, Protocol, WayIn};

/// In lower case, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Domains(Vec<String>);

impl Domains {
    pub(super) fn of(given: &[HostName]) -> Self {
        let mut domains: Vec<String> = given.iter().map(|domain| domain.trim().to_lowercase()).collect();
        domains.sort_unstable();
        domains.dedup();
        Self(domains)
    }
}

impl Column for Domains {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        let text = String::from_value(value)?;
        Ok(Self(text.split_whitespace().map(str::to_owned).collect()))
    }
}

impl ToArg for Domains {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Text(self.0.join(" ").into())
    }
}

/// 409 when another connection has one of them.
pub(super) fn set(tx: &mut Tx<'_>, app: AppId, id: ConnectionId, domains: &Domains) -> Result<()> {
    clear(tx, app, id)?;
    for domain in &domains.0 {
        let is_free = tx.changes_one(
            "INSERT INTO connection_domains (app_id, domain, connection_id) VALUES ($1, $2, $3) \
             ON CONFLICT (app_id, domain) DO NOTHING",
            &args![app, domain, id],
        )?;
        if !is_free {
            let message = format!("Another connection already has the domain {domain}.");
            return Err(Error::new(Code::Conflict, message));
        }
    }
    Ok(())
}

pub(super) fn clear(tx: &mut Tx<'_>, app: AppId, id: ConnectionId) -> Result<()> {
    tx.run("DELETE FROM connection_domains WHERE app_id = $1 AND connection_id = $2", &args![app, id])
}

/// The connection that takes this address, which nobody has.
pub(super) fn way_of(tx: &mut Tx<'_>, app: AppId, email: &str) -> Result<Option<WayIn>> {
    let domain = email.rsplit('@').next().unwrap_or_default().to_lowercase();
    let found: Option<(ConnectionId, Protocol, String)> = tx.opt(
        "SELECT federation_connections.id, federation_connections.type, federation_connections.name FROM connection_domains \
         JOIN federation_connections ON federation_connections.id = connection_domains.connection_id \
         WHERE connection_domains.app_id = $1 AND connection_domains.domain = $2",
        &args![app, domain],
    )?;
    Ok(found.map(|(id, protocol, name)| WayIn { id, protocol, name }))
}
