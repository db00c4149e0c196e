//! What happens after the commit: the outbox and those who read it, jobs, leases, mail and SMS, and calls to
//! servers outside.
//!
//! A fact written with [`emit`] commits with the change it tells of and reaches every consumer exactly once and every
//! node's caches soon. Jobs are idempotent, bounded and may be killed anywhere. This room knows no routes, nor why a
//! fact is true.

mod cache;
mod delivery;
mod estimates;
mod jobs;
pub mod lease;
mod lossy;
pub mod mail;
mod mirror;
pub mod outbound;
pub mod outbox;
mod pace;
pub mod purge;
pub mod sms;
mod tables;
mod test_clock;
pub mod translator;

pub use cache::{Cached, Fill};
pub use delivery::{Backlog, Waiting, backlog, waiting};
pub use estimates::Measuring;
pub use jobs::{Job, JobHandle, JobThread, Runner, Signal, Worked};
pub use lease::{Exclusive, Lease};
pub use lossy::{Heard, Keyed, Listener, Lossy};
pub use mail::{Mailer, NewMail, Sender, queue_mail};
pub use mirror::{Mirror, Refresher, Stale};
pub use outbox::{
    Fact, FactId, FactKind, FactScope, FactType, Installation, LoggedEventId, Mark, News, Outbox, Reader,
    WebhookEventId, emit, emit_all,
};
pub use pace::Pace;
pub use purge::{Purger, Sweeper};
pub use sms::{NewSms, Texter, queue_sms};
pub use tables::TABLES;
pub use test_clock::TestClock;
