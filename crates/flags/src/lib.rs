//! Feature flags: definitions with their history, evaluation from memory, what clients report about their use.
//!
//! Evaluation never reads or writes the store, except to learn what the service knows about an access token's user and
//! workspace. A change reaches evaluation on its own node before it is answered, and other nodes within a second.

pub mod definitions;
mod evaluation;
pub mod facts;
pub mod memory;
pub mod model;
mod ofrep;
pub mod rules;
mod tables;
mod usage;

use std::{ops::Deref, sync::Arc};

use kernel::{AppId, Error, Result};
use spine::{Mirror as _, Outbox, Refresher, Runner};
use tenancy::{OperatorKey, Tenancy};
use web::Routes;

use definitions::Changes;
use memory::Memory;
pub use tables::TABLES;
use usage::Usage;

/// What the routes of this room work with. One counter to clone, since every evaluation does.
#[derive(Clone)]
pub struct Flags(Arc<Room>);

pub struct Room {
    pub(crate) tenancy: Tenancy,
    pub(crate) changes: Changes,
    pub(crate) usage: Usage,
    pub memory: Memory,
}

impl Flags {
    /// Knows no flag until [`Flags::load`].
    pub fn new(tenancy: Tenancy) -> Self {
        let db = tenancy.db.clone();
        let memory = Memory::new(db.clone());
        Self(Arc::new(Room {
            changes: Changes { db: db.clone(), memory: memory.clone() },
            usage: Usage::new(db),
            memory,
            tenancy,
        }))
    }

    /// Registers what keeps this node's memory true, and what writes down what was gathered. Call it before [`Flags::load`].
    pub fn register(&self, outbox: &mut Outbox, runner: &Runner) {
        let memory = self.memory.clone();
        outbox.follow(facts::FOLLOWER, move |news| memory.hear(news));
        runner.add(Refresher(self.memory.clone()));
        runner.add(self.usage.writer());
    }

    /// Reads all flags.
    pub async fn load(&self) -> Result<()> {
        self.memory.load().await
    }

    /// Reads the flags of an app that came in with them.
    pub async fn arrive(&self, app: AppId) -> Result<()> {
        self.memory.refresh(app).await
    }

    /// 404 unless there is such an app.
    pub(crate) fn require_app(&self, app: AppId) -> Result<()> {
        if self.tenancy.apps.has(app) { Ok(()) } else { Err(Error::not_found("app")) }
    }
}

impl Deref for Flags {
    type Target = Room;

    fn deref(&self) -> &Room {
        &self.0
    }
}

impl AsRef<OperatorKey> for Flags {
    fn as_ref(&self) -> &OperatorKey {
        &self.tenancy.operator
    }
}

pub fn routes() -> Routes<Flags> {
    definitions::http::routes()
        .merge(definitions::groups_http::routes())
        .merge(evaluation::http::routes())
        .merge(ofrep::http::routes())
        .merge(usage::http::routes())
}
