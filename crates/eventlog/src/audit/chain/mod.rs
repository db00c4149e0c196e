//! A chain over the service's own entries, in the order in which they were written down: each link holds the digest of
//! its entry and of the link before, so that no entry can be changed, removed or put in unnoticed.
//!
//! An entry's digest is made of salted digests of its values. A value that is erased leaves its digest behind and takes
//! its salt along: the chain still verifies, and nobody can find the value by trying. Links of entries that are older than
//! the retention go from the beginning of the chain on.

mod verify;
mod verifying;

pub(super) use verify::Verdict;
pub(crate) use verifying::Verifications;

use std::collections::{BTreeMap, HashSet};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::{AppId, Error, Result, TenantId, Timestamp};
use serde_json::{Map, Value, json};
use store::{Json, Tx, args, row, sql};

use crate::{LoggedEventId, ingest::ArrivedEvent};

/// Texts by the names of parameters.
type Texts = BTreeMap<String, String>;

/// One link.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its place in the chain, from 1.
    seq: i64,
    event: LoggedEventId,
    at: Timestamp,
    salts: Json<Texts>,
    /// Digests of the values that were erased.
    erased: Option<Json<Texts>>,
    /// The digest of the entry.
    content: String,
    /// The digest of content, place and the link before.
    digest: String,
}

row! {
    Link = "event_links" { seq, event: "event_id", at: "happened_at", salts, erased, content, digest }
}

const LAST: &str = "SELECT last_seq, last_digest FROM event_chains WHERE app_id = $1";
const INSERT: &str = "INSERT INTO event_links (app_id, seq, event_id, happened_at, salts, content, digest) \
     SELECT app_id, seq, event_id, happened_at, salts, content, digest FROM {rows} WHERE true";
const MOVE_END: &str = "INSERT INTO event_chains (app_id, first_seq, before_first, last_seq, last_digest) \
     VALUES ($1, 1, '', $2, $3) \
     ON CONFLICT (app_id) DO UPDATE SET last_seq = excluded.last_seq, last_digest = excluded.last_digest";
const OF_EVENT: &str = sql!("SELECT ", Link::COLUMNS, " FROM event_links WHERE app_id = $1 AND event_id = $2");
const ERASE: &str = "UPDATE event_links SET salts = $3, erased = $4 WHERE app_id = $1 AND seq = $2";
const PAGE: &str =
    sql!("SELECT ", Link::COLUMNS, " FROM event_links WHERE app_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3");
const FIRST: &str =
    "SELECT seq, event_id, happened_at, digest FROM event_links WHERE app_id = $1 ORDER BY seq LIMIT $2";
const KEPT: &str = "SELECT id FROM event_rows WHERE app_id = $1 AND id = ANY($2)";
const DROP: &str = "DELETE FROM event_links WHERE app_id = $1 AND seq <= $2";
const MOVE_START: &str = "UPDATE event_chains SET first_seq = $2, before_first = $3 WHERE app_id = $1";
const POSITIONS: &str = "SELECT event_id, seq, digest FROM event_links WHERE app_id = $1 AND event_id = ANY($2)";

/// Adds entries at the end, in the transaction that writes them down.
pub fn append(tx: &mut Tx<'_>, app: AppId, entries: &[ArrivedEvent]) -> Result<()> {
    let (mut seq, mut digest) = tx.opt::<(i64, String)>(LAST, &args![app])?.unwrap_or_default();
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        let parameters: Map<String, Value> = serde_json::from_str(&entry.parameters).map_err(Error::internal)?;
        let mut salts = Texts::new();
        for name in parameters.keys() {
            salts.insert(name.clone(), BASE64_URL_SAFE_NO_PAD.encode(tx.entropy().bytes::<16>()));
        }
        let values = values(&parameters, &salts, &Texts::new()).unwrap_or_default();
        let content = content(entry.id, &entry.name, entry.at, entry.tenant, &values);
        seq += 1;
        digest = link(&digest, seq, &content);
        let salts = serde_json::to_string(&salts).map_err(Error::internal)?;
        rows.push((app, seq, entry.id, entry.at, salts, content, digest.clone()));
    }
    tx.insert_all(INSERT, ["app_id", "seq", "event_id", "happened_at", "salts", "content", "digest"], &rows)?;
    tx.run(MOVE_END, &args![app, seq, digest])
}

/// Values of an entry are about to be erased: their digests stay, their salts go.
pub fn erase(tx: &mut Tx<'_>, app: AppId, event: &str, gone: &[(String, Value)]) -> Result<()> {
    let Some(found) = tx.opt::<Link>(OF_EVENT, &args![app, event])? else { return Ok(()) };
    let Json(mut salts) = found.salts;
    let mut erased = found.erased.map(|Json(erased)| erased).unwrap_or_default();
    for (name, value) in gone {
        if let Some(salt) = salts.remove(name) {
            erased.insert(name.clone(), salted(&salt, name, value));
        }
    }
    tx.run(ERASE, &args![app, found.seq, Json(salts), Json(erased)])
}

/// Drops links at the beginning whose entries the retention has deleted; how many.
pub fn sweep(tx: &mut Tx<'_>, app: AppId, before: Timestamp, most: i64) -> Result<u64> {
    let mut links: Vec<(i64, String, Timestamp, String)> = tx.all(FIRST, &args![app, most])?;
    // Only from the beginning on: what follows one that is kept stays with it.
    links.truncate(links.iter().take_while(|(_, _, at, _)| *at < before).count());
    let ids: Vec<String> = links.iter().map(|(_, event, ..)| event.clone()).collect();
    let kept: HashSet<String> = tx.all::<(String,)>(KEPT, &args![app, ids])?.into_iter().map(|(id,)| id).collect();
    let gone = links.iter().take_while(|(_, event, ..)| !kept.contains(event));
    let Some((seq, _, _, digest)) = gone.last() else { return Ok(0) };
    tx.run(MOVE_START, &args![app, *seq + 1, digest])?;
    tx.exec(DROP, &args![app, *seq])
}

/// Places in the chain and digests, by entry.
pub fn positions(tx: &mut Tx<'_>, app: AppId, events: &[String]) -> Result<Vec<(LoggedEventId, i64, String)>> {
    tx.all(POSITIONS, &args![app, *events])
}

/// The salted digest of each value; `None` where something has no salt that was there when it was written.
fn values(parameters: &Map<String, Value>, salts: &Texts, erased: &Texts) -> Option<Texts> {
    let digest = |(name, value): (&String, &Value)| {
        let digest = match erased.get(name) {
            Some(digest) => digest.clone(),
            None => salted(salts.get(name)?, name, value),
        };
        Some((name.clone(), digest))
    };
    parameters.iter().map(digest).collect()
}

fn salted(salt: &str, name: &str, value: &Value) -> String {
    digest(&json!([salt, name, value]))
}

fn content(event: LoggedEventId, name: &str, at: i64, tenant: Option<TenantId>, values: &Texts) -> String {
    digest(&json!([event, name, at, tenant, values]))
}

fn link(before: &str, seq: i64, content: &str) -> String {
    digest(&json!([before, seq, content]))
}

fn digest(of: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(vault::sha256_bytes(of.to_string().as_bytes()))
}
