//! Going on behind the last signal that a client has seen.

use std::time::Duration;

use bytes::Bytes;
use kernel::{Result, Timestamp};
use store::Db;

use super::{
    Listener,
    news::{TOLD, signals_of},
    resync,
};

/// How long signals can be told again.
const RESUMED: Duration = Duration::from_secs(5 * 60);
/// Signals that a stream may have missed.
const MOST: i64 = 1_000;

/// What a client says it has seen last: a position, or something that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastSeen {
    Position(i64),
    Unknown,
}

impl LastSeen {
    /// Reads `Last-Event-ID`. Strict, since we wrote it: digits without a leading zero.
    pub(super) fn parse(text: &str) -> Self {
        let digits = (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(position) if digits && (text == "0" || !text.starts_with('0')) => Self::Position(position),
            _ => Self::Unknown,
        }
    }

    /// A position that no fact has had yet is unknown.
    pub(super) async fn checked(self, db: &Db) -> Result<Self> {
        let head = db.read(spine::outbox::last_position).await?;
        Ok(match self {
            Self::Position(position) if position <= head => self,
            Self::Position(_) | Self::Unknown => Self::Unknown,
        })
    }
}

/// What the stream has missed up to `until`, or that it has to read everything.
pub(super) async fn missed(db: &Db, listener: &Listener, seen: LastSeen, until: i64) -> Result<Vec<Bytes>> {
    let now = db.clock().now();
    let told_again = match seen {
        LastSeen::Position(after) => told_since(db, listener, after, until, now).await?,
        LastSeen::Unknown => None,
    };
    told_again.map_or_else(|| Ok(vec![resync(listener.tenant, now)?]), Ok)
}

/// `None` when the last one that was seen is too old, or some of what followed is gone or too much.
async fn told_since(
    db: &Db,
    listener: &Listener,
    after: i64,
    until: i64,
    now: Timestamp,
) -> Result<Option<Vec<Bytes>>> {
    let found = db.snapshot(move |tx| {
        let facts = spine::outbox::since(tx, after, until, TOLD, MOST)?;
        Ok((spine::outbox::told_at(tx, after)?, facts))
    });
    let (seen_at, Some(facts)) = found.await? else { return Ok(None) };
    if seen_at.is_some_and(|at| now.since(at) > RESUMED) {
        return Ok(None);
    }
    let mut frames = Vec::new();
    for signal in facts.iter().flat_map(signals_of).filter(|signal| signal.is_for(listener)) {
        if now.since(signal.at) > RESUMED {
            return Ok(None);
        }
        frames.push(signal.to_frame(listener.tenant)?);
    }
    Ok(Some(frames))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_we_wrote_is_a_position() {
        for (text, read) in [("0", 0), ("1", 1), ("42", 42), ("999999999999999999", 999_999_999_999_999_999)] {
            assert_eq!(LastSeen::parse(text), LastSeen::Position(read));
        }
        for text in ["", " 1", "1 ", "+1", "-1", "01", "1.0", "1e3", "0x1", "１", "9999999999999999999", "null", "\0"]
        {
            assert_eq!(LastSeen::parse(text), LastSeen::Unknown, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_position_is_read_as_it_was_written(position in 0_i64..1_000_000_000_000_000_000) {
            prop_assert_eq!(LastSeen::parse(&position.to_string()), LastSeen::Position(position));
        }

        #[test]
        fn anything_else_is_unknown(text in "\\PC{0,40}") {
            match LastSeen::parse(&text) {
                LastSeen::Position(position) => prop_assert_eq!(position.to_string(), text),
                LastSeen::Unknown => {}
            }
        }
    }
}
