//! Verifies a chain from its beginning to where it ended when this began.

use std::collections::HashMap;

use kernel::{AppId, Error, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use store::{Db, Json, Tx, args};

use super::{Link, PAGE, content, link, values};
use crate::{
    LoggedEventId,
    fold::Folder,
    keeping,
    names::{self, OWN_PREFIX},
    parameters::ERASED,
};

/// What became of a verification.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AuditVerdict")]
pub struct Verdict {
    /// Whether no entry was changed, removed or put in.
    pub(super) ok: bool,
    /// How many entries were found to be right.
    pub(super) entries: u64,
    /// The first entry that is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_bad: Option<LoggedEventId>,
}

/// Where a chain begins and ends.
#[derive(Clone, Debug)]
struct Chain {
    first_seq: i64,
    before_first: String,
    last_seq: i64,
    last_digest: String,
    /// Entries before this instant may have been deleted by the retention.
    swept_before: Option<Timestamp>,
}

const CHAIN: &str = "SELECT first_seq, before_first, last_seq, last_digest FROM event_chains WHERE app_id = $1";
const ROWS: &str = "SELECT id, name_id, happened_at, tenant_id, parameters FROM event_rows \
                    WHERE app_id = $1 AND id = ANY($2)";
const OWN_NAMES: &str = "SELECT id FROM event_names WHERE app_id = $1 AND substr(name, 1, 9) = $2";
const UNLINKED: &str = "SELECT event_rows.id FROM event_rows LEFT JOIN event_links \
     ON event_links.app_id = event_rows.app_id AND event_links.event_id = event_rows.id \
     WHERE event_rows.app_id = $1 AND event_rows.name_id = ANY($2) AND event_rows.id >= $3 \
     AND event_links.event_id IS NULL ORDER BY event_rows.id LIMIT 1";

/// Of ten seconds each.
const MOST_WAITS: usize = 30;

/// Links that are read at once.
const LINKS: usize = 200;

/// How far a verification is.
#[derive(Clone, Debug)]
struct Place {
    /// The link to look at next.
    seq: i64,
    /// The digest of the one before.
    before: String,
    entries: u64,
    /// The first entry that was looked at.
    first: Option<LoggedEventId>,
}

/// Whether the entries of an app are those that were written down.
pub async fn verify(db: &Db, folder: &Folder, app: AppId) -> Result<Verdict> {
    'again: loop {
        let Some(chain) = db.snapshot(move |tx| chain(tx, app)).await? else {
            return Ok(Verdict { ok: true, entries: 0, first_bad: None });
        };
        wait_for_fold(folder, app).await?;
        let mut place = Place { seq: chain.first_seq, before: chain.before_first.clone(), entries: 0, first: None };
        while place.seq <= chain.last_seq {
            let (at, end) = (place.clone(), chain.clone());
            match db.scan(move |tx| page(tx, app, &end, at.clone())).await? {
                Page::Right(next) => place = next,
                Page::Bad { entries, first_bad } => return Ok(Verdict { ok: false, entries, first_bad }),
                // The retention has moved the beginning meanwhile.
                Page::Moved => continue 'again,
            }
        }
        let (first, entries) = (place.first, place.entries);
        let unlinked = db.scan(move |tx| unlinked(tx, app, first)).await?;
        let ok = place.before == chain.last_digest && unlinked.is_none();
        return Ok(Verdict { ok, entries, first_bad: unlinked });
    }
}

/// What waits for the fold cannot be looked at.
async fn wait_for_fold(folder: &Folder, app: AppId) -> Result<()> {
    for _ in 0..MOST_WAITS {
        if folder.settle(app).await? {
            return Ok(());
        }
    }
    Err(Error::internal("the fold does not catch up with an app's events"))
}

fn chain(tx: &mut Tx<'_>, app: AppId) -> Result<Option<Chain>> {
    let swept_before = keeping::swept_before(tx, app)?;
    let found = tx.opt::<(i64, String, i64, String)>(CHAIN, &args![app])?;
    Ok(found.map(|(first_seq, before_first, last_seq, last_digest)| Chain {
        first_seq,
        before_first,
        last_seq,
        last_digest,
        swept_before,
    }))
}

enum Page {
    Right(Place),
    Bad { entries: u64, first_bad: Option<LoggedEventId> },
    Moved,
}

/// An entry as it is kept.
struct Entry {
    name: String,
    at: Timestamp,
    tenant: Option<TenantId>,
    /// `None` when it cannot even be read.
    parameters: Option<Map<String, Value>>,
}

fn page(tx: &mut Tx<'_>, app: AppId, end: &Chain, mut place: Place) -> Result<Page> {
    let current = chain(tx, app)?;
    if current.as_ref().is_none_or(|current| current.first_seq > place.seq) {
        return Ok(Page::Moved);
    }
    // Of now: entries may have been deleted since the beginning.
    let swept_before = current.and_then(|current| current.swept_before);
    let most = i64::try_from(LINKS).unwrap_or(i64::MAX).min(end.last_seq - place.seq + 1);
    let links: Vec<Link> = tx.all(PAGE, &args![app, place.seq, most])?;
    let entries = entries(tx, app, &links)?;
    if links.is_empty() {
        return Ok(Page::Bad { entries: place.entries, first_bad: None });
    }
    for found in links {
        let is_next = found.seq == place.seq && found.digest == link(&place.before, found.seq, &found.content);
        let is_right = match entries.get(&found.event) {
            Some(entry) => entry_is_right(entry, &found),
            None => swept_before.is_some_and(|swept| found.at < swept),
        };
        if !(is_next && is_right) {
            return Ok(Page::Bad { entries: place.entries, first_bad: Some(found.event) });
        }
        let first = place.first.or(Some(found.event));
        place = Place { seq: found.seq + 1, before: found.digest, entries: place.entries + 1, first };
    }
    Ok(Page::Right(place))
}

fn entries(tx: &mut Tx<'_>, app: AppId, links: &[Link]) -> Result<HashMap<LoggedEventId, Entry>> {
    type Row = (LoggedEventId, i64, Timestamp, Option<TenantId>, String);
    let ids: Vec<String> = links.iter().map(|link| link.event.to_string()).collect();
    let rows: Vec<Row> = tx.all(ROWS, &args![app, ids])?;
    let names: Vec<i64> = rows.iter().map(|row| row.1).collect();
    let names = names::by_id(tx, app, &names)?;
    let entry = |(id, name, at, tenant, parameters): Row| {
        let name = names.get(&name).cloned().unwrap_or_default();
        (id, Entry { name, at, tenant, parameters: serde_json::from_str(&parameters).ok() })
    };
    Ok(rows.into_iter().map(entry).collect())
}

fn entry_is_right(entry: &Entry, found: &Link) -> bool {
    let Some(parameters) = &entry.parameters else { return false };
    let erased = found.erased.as_ref().map(|Json(erased)| erased.clone()).unwrap_or_default();
    let is_erased = |name: &String| parameters.get(name).is_some_and(|value| value == ERASED);
    let Some(values) = values(parameters, &found.salts.0, &erased) else { return false };
    let content = content(found.event, &entry.name, entry.at.as_micros(), entry.tenant, &values);
    erased.keys().all(is_erased) && content == found.content
}

/// An entry of the service's own that is in no chain, though the chain had begun.
fn unlinked(tx: &mut Tx<'_>, app: AppId, first: Option<LoggedEventId>) -> Result<Option<LoggedEventId>> {
    let Some(first) = first else { return Ok(None) };
    let own: Vec<(i64,)> = tx.all(OWN_NAMES, &args![app, OWN_PREFIX])?;
    let own: Vec<i64> = own.into_iter().map(|(id,)| id).collect();
    Ok(tx.opt::<(LoggedEventId,)>(UNLINKED, &args![app, own, first])?.map(|(id,)| id))
}
