//! Where blocks are.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Code, Error, Result, Timestamp, id_kinds};

use super::{
    Block, KeptEvent, Series, block,
    digests::{digest, is_digest_of},
};
use crate::{LoggedEventId, grain::Grain, ingest};

id_kinds! {
    /// A block of events.
    BlockId(EventBlock) = "evb";
}

/// What is known of a block without reading it. It lies within one month.
#[derive(Clone, Debug)]
pub struct StoredBlock {
    pub id: BlockId,
    pub app: AppId,
    pub name: i64,
    /// When its oldest and its newest event happened.
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    pub events: i64,
    pub digest: Vec<u8>,
}

row! {
    StoredBlock = "event_blocks" { id, app: "app_id", name: "name_id", first_at, last_at, events, digest }
}

/// Blocks that are looked up at once.
pub const PAGE: usize = 16;

const INSERT: &str = "INSERT INTO event_blocks (app_id, name_id, id, first_at, last_at, first_id, last_id, events, audited, \
                      digest, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
const REWRITE: &str = "UPDATE event_blocks SET first_at = $5, last_at = $6, first_id = $7, last_id = $8, events = $9, \
                       audited = $10, digest = $11, data = $12 \
                       WHERE app_id = $1 AND name_id = $2 AND id = $3 AND digest = $4";
const DATA: &str = "SELECT data FROM event_blocks WHERE app_id = $1 AND name_id = $2 AND id = $3";
const ASCENDING: &str = sql!(
    "SELECT ",
    StoredBlock::COLUMNS,
    " FROM event_blocks WHERE app_id = $1 AND name_id = $2 AND (first_at, id) > ($3, $4) AND first_at <= $5 \
      AND last_at >= $6 ORDER BY first_at, id LIMIT $7"
);
const DESCENDING: &str = sql!(
    "SELECT ",
    StoredBlock::COLUMNS,
    " FROM event_blocks WHERE app_id = $1 AND name_id = $2 AND (last_at, id) < ($3, $4) AND last_at >= $5 \
      AND first_at <= $6 ORDER BY last_at DESC, id DESC LIMIT $7"
);
const AUDITED: &str = sql!(
    "SELECT ",
    StoredBlock::COLUMNS,
    " FROM event_blocks WHERE app_id = $1 AND audited > 0 AND (last_at, id) < ($2, $3) AND last_at >= $4 \
      AND first_at <= $5 ORDER BY last_at DESC, id DESC LIMIT $6"
);
const HOLDING: &str =
    sql!("SELECT ", StoredBlock::COLUMNS, " FROM event_blocks WHERE app_id = $1 AND last_id >= $2 AND first_id <= $2");
const NEXT: &str = sql!(
    "SELECT ",
    StoredBlock::COLUMNS,
    " FROM event_blocks WHERE app_id = $1 AND name_id = $2 AND id > $3 ORDER BY id LIMIT 1"
);
const OLD: &str = sql!(
    "SELECT ",
    StoredBlock::COLUMNS,
    " FROM event_blocks WHERE app_id = $1 AND last_at < $2 ORDER BY last_at, id LIMIT 1"
);
const CUT: &str = sql!(
    "SELECT ",
    StoredBlock::COLUMNS,
    " FROM event_blocks WHERE app_id = $1 AND last_at >= $2 AND last_at < $3 AND first_at < $2 LIMIT 1"
);
const DELETE: &str = "DELETE FROM event_blocks WHERE app_id = $1 AND name_id = $2 AND id = $3 AND digest = $4";
const ALL: &str = sql!(
    "SELECT ",
    StoredBlock::COLUMNS,
    " FROM event_blocks WHERE (app_id, name_id, id) > ($1, $2, $3) ORDER BY app_id, name_id, id LIMIT $4"
);

/// Before and after every id.
const FIRST_ID: &str = "";
const LAST_ID: &str = "~";

impl StoredBlock {
    pub fn open(&self, tx: &mut Tx<'_>) -> Result<Block> {
        let (data,) = tx.one::<(Vec<u8>,)>(DATA, &args![self.app, self.name, self.id])?;
        self.opened(data)
    }

    /// Checks that the block is as it was written.
    pub(super) fn opened(&self, data: Vec<u8>) -> Result<Block> {
        if !is_digest_of(&self.digest, &data) {
            return Err(unreadable(format!("{} of {}: another digest", self.id, self.app)));
        }
        let block = Block::open(data)?;
        if i64::try_from(block.length()) != Ok(self.events) {
            return Err(unreadable(format!("{} of {}: another number of events", self.id, self.app)));
        }
        Ok(block)
    }

    pub fn events(&self, tx: &mut Tx<'_>) -> Result<Vec<KeptEvent>> {
        self.open(tx)?.events(self.name)
    }
}

/// Nothing is guessed: a question that needs a block which cannot be read has no answer.
pub fn unreadable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let message = "A block of stored events is damaged; the doctor command names it. Restore it from a backup.";
    Error::new(Code::EventsDamaged, message).with_source(cause)
}

/// A block as it is about to be written.
#[derive(Debug)]
pub struct WrittenBlock {
    series: Series,
    first_at: Timestamp,
    last_at: Timestamp,
    first_id: LoggedEventId,
    last_id: LoggedEventId,
    events: usize,
    audited: usize,
    digest: Vec<u8>,
    data: Vec<u8>,
}

impl WrittenBlock {
    /// Of events that are in their order; `None` of none.
    pub fn of(series: Series, events: &[KeptEvent]) -> Result<Option<Self>> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(None) };
        let ids = || events.iter().map(|event| event.id);
        let (Some(first_id), Some(last_id)) = (ids().min(), ids().max()) else { return Ok(None) };
        let data = block::encode(events)?;
        Ok(Some(Self {
            series,
            first_at: first.at,
            last_at: last.at,
            first_id,
            last_id,
            events: events.len(),
            audited: events.iter().filter(|event| event.audited).count(),
            digest: digest(&data).to_vec(),
            data,
        }))
    }

    pub fn insert(&self, tx: &mut Tx<'_>) -> Result<()> {
        let id: BlockId = tx.new_id();
        let Series { app, name } = self.series;
        let (events, audited) = self.counts()?;
        let (first, last) = (self.first_at, self.last_at);
        tx.run(
            INSERT,
            &args![app, name, id, first, last, self.first_id, self.last_id, events, audited, self.digest, self.data],
        )
    }

    fn counts(&self) -> Result<(i64, i64)> {
        let count = |count: usize| i64::try_from(count).map_err(Error::internal);
        Ok((count(self.events)?, count(self.audited)?))
    }
}

/// Puts other events into a block, or deletes it when there are none; `false`, and nothing, when somebody else was faster.
pub fn rewrite(tx: &mut Tx<'_>, before: &StoredBlock, after: Option<&WrittenBlock>) -> Result<bool> {
    let StoredBlock { id, app, name, digest, .. } = before;
    let Some(after) = after else { return tx.changes_one(DELETE, &args![*app, *name, *id, *digest]) };
    let (events, audited) = after.counts()?;
    let (first, last) = (after.first_at, after.last_at);
    tx.changes_one(
        REWRITE,
        &args![
            *app,
            *name,
            *id,
            *digest,
            first,
            last,
            after.first_id,
            after.last_id,
            events,
            audited,
            after.digest,
            after.data
        ],
    )
}

/// Blocks of a name with events from the first instant to the last, those that begin first before others; the next ones
/// after a block.
pub fn ascending(
    tx: &mut Tx<'_>,
    Series { app, name }: Series,
    (from, to): (Timestamp, Timestamp),
    after: Option<&StoredBlock>,
) -> Result<Vec<StoredBlock>> {
    let (at, id) = match after {
        Some(block) => (block.first_at, block.id.to_string()),
        // A block lies within a month, so that none that begins earlier reaches as far.
        None => (Timestamp::from_micros(Grain::Month.start(from.as_micros())), FIRST_ID.to_owned()),
    };
    tx.all(ASCENDING, &args![app, name, at, id, to, from, PAGE as i64])
}

/// Those that end last before others, of one name; of all names, those with entries of the audit trail.
pub fn descending(
    tx: &mut Tx<'_>,
    (app, name): (AppId, Option<i64>),
    (from, to): (Timestamp, Timestamp),
    after: Option<&StoredBlock>,
) -> Result<Vec<StoredBlock>> {
    let (at, id) = match after {
        Some(block) => (block.last_at, block.id.to_string()),
        None => (Timestamp::from_micros(Grain::Month.end(Grain::Month.start(to.as_micros()))), LAST_ID.to_owned()),
    };
    match name {
        Some(name) => tx.all(DESCENDING, &args![app, name, at, id, from, to, PAGE as i64]),
        None => tx.all(AUDITED, &args![app, at, id, from, to, PAGE as i64]),
    }
}

/// Those among whose events one of this id may be.
pub fn holding(tx: &mut Tx<'_>, app: AppId, id: LoggedEventId) -> Result<Vec<StoredBlock>> {
    tx.all(HOLDING, &args![app, id])
}

/// The block of a name that was written after another one.
pub fn next_block(tx: &mut Tx<'_>, Series { app, name }: Series, after: &str) -> Result<Option<StoredBlock>> {
    tx.opt(NEXT, &args![app, name, after])
}

/// A block with events that are older than an instant.
pub struct OldBlock {
    block: StoredBlock,
    /// What is left of it.
    left: Option<WrittenBlock>,
    /// Of those that go.
    ingest_ids: Vec<String>,
}

/// A block with older events; those of which all are older come first, and go even if they cannot be read. Their `ingestId`s
/// are not known then, and stay. Of events with an `ingestId` only the first `most` are taken at a time: each is a page of its own
/// to the writer.
pub fn next_old(tx: &mut Tx<'_>, app: AppId, before: Timestamp, most: usize) -> Result<Option<OldBlock>> {
    if let Some(block) = tx.opt::<StoredBlock>(OLD, &args![app, before])? {
        let events = match block.events(tx) {
            Err(error) if error.code() == Code::EventsDamaged => Vec::new(),
            read => read?,
        };
        return OldBlock::of(block, events, before, most).map(Some);
    }
    let end = Timestamp::from_micros(Grain::Month.end(Grain::Month.start(before.as_micros())));
    let Some(block) = tx.opt::<StoredBlock>(CUT, &args![app, before, end])? else { return Ok(None) };
    let events = block.events(tx)?;
    OldBlock::of(block, events, before, most).map(Some)
}

impl OldBlock {
    fn of(block: StoredBlock, events: Vec<KeptEvent>, before: Timestamp, most: usize) -> Result<Self> {
        let (mut staying, mut ingest_ids) = (Vec::new(), Vec::new());
        for event in events {
            match &event.ingest_id {
                _ if event.at >= before => staying.push(event),
                Some(_) if ingest_ids.len() == most => staying.push(event),
                known => ingest_ids.extend(known.clone()),
            }
        }
        let left = WrittenBlock::of(Series { app: block.app, name: block.name }, &staying)?;
        Ok(Self { block, left, ingest_ids })
    }
}

/// Deletes older events of a block, unless somebody else has changed it since.
pub fn delete_older(tx: &mut Tx<'_>, OldBlock { block, left, ingest_ids }: &OldBlock) -> Result<()> {
    if rewrite(tx, block, left.as_ref())? {
        ingest::forget(tx, block.app, ingest_ids.iter().map(String::as_str))?;
    }
    Ok(())
}

/// A block that cannot be read.
#[derive(Clone, Debug)]
pub struct DamagedBlock {
    pub app: AppId,
    pub id: BlockId,
}

/// Blocks that are looked at for damage at once.
const EXAMINED: i64 = 100;

/// Looks at blocks until `enough` says so; those that are damaged, and how many were looked at.
pub fn damaged(tx: &mut Tx<'_>, enough: &dyn Fn() -> bool) -> Result<(Vec<DamagedBlock>, usize)> {
    let (mut found, mut examined) = (Vec::new(), 0);
    let mut after = (String::new(), 0, String::new());
    loop {
        let page: Vec<StoredBlock> = tx.all(ALL, &args![after.0, after.1, after.2, EXAMINED])?;
        let Some(last) = page.last() else { return Ok((found, examined)) };
        after = (last.app.to_string(), last.name, last.id.to_string());
        for block in page {
            examined += 1;
            if block.events(tx).is_err() {
                found.push(DamagedBlock { app: block.app, id: block.id });
            }
            if enough() {
                return Ok((found, examined));
            }
        }
    }
}
