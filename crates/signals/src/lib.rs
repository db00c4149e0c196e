//! What happens in an app, told to the outside: webhooks, and a realtime channel. This room owns endpoints, signing
//! secrets, deliveries and streams, and never asks why a fact is true.
//!
//! What committed is delivered at least once. Facts become deliveries exactly once, in their order; a delivery is retried
//! over some 38 hours and then kept, so that it can be replayed.

pub mod deliveries;
pub mod endpoints;
pub mod events;
pub mod facts;
mod realtime;
pub mod secrets;
mod sender;
mod tables;

use std::time::Duration;

use billing::usage::UsageSignals;
use kernel::Result;
use spine::{News, Outbox, Runner, Signal, outbound::Outbound};
use store::{Db, Tx};
use tenancy::{OperatorKey, Tenancy};
use web::Routes;

use deliveries::Retention;
use events::Watchers;
use realtime::Hub;
use sender::Sender;
pub use tables::{CLAIMS, TABLES};

/// What the operator decides about this room.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long delivered ones are kept.
    pub keep_delivered: Duration,
    /// How long those are kept that were given up.
    pub keep_dead: Duration,
    /// How often a stream is sent a comment.
    pub heartbeat: Duration,
    /// Streams that may be open on this node.
    pub most_streams: usize,
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

impl Default for Settings {
    fn default() -> Self {
        Self {
            keep_delivered: DAY * 30,
            keep_dead: DAY * 90,
            heartbeat: Duration::from_secs(25),
            most_streams: streams_beside(web::server::Limits::default().max_connections),
        }
    }
}

/// How many streams a server with so many connections may have: the rest is for requests.
pub const fn streams_beside(connections: usize) -> usize {
    connections / 4 * 3
}

/// What the routes of this room work with. Cheap to clone.
#[derive(Clone)]
pub struct Signals {
    pub db: Db,
    pub tenancy: Tenancy,
    pub(crate) outbound: Outbound,
    /// Rung when there is something to send.
    pub(crate) due: Signal,
    pub(crate) settings: Settings,
    pub(crate) hub: Hub,
    pub(crate) watchers: Watchers,
}

impl Signals {
    pub fn new(tenancy: Tenancy, outbound: Outbound, settings: Settings) -> Self {
        let hub = Hub::new(settings.most_streams);
        let watchers = Watchers::default();
        Self { db: tenancy.db.clone(), tenancy, outbound, due: Signal::new(), settings, hub, watchers }
    }

    /// Registers what turns facts into deliveries, and what sends and forgets them.
    pub fn register(&self, outbox: &mut Outbox, runner: &Runner) {
        let (keyring, due) = (self.tenancy.keyring.clone(), self.due.clone());
        outbox.consume_together(facts::CONSUMER, move |tx, facts| deliveries::consume(tx, &keyring, &due, facts));
        let (hub, db, watchers) = (self.hub.clone(), self.db.clone(), self.watchers.clone());
        outbox.follow(realtime::FOLLOWER, move |news| {
            if let News::Fact(fact) = news {
                watchers.tell(fact);
            }
            realtime::hear(&hub, &db, news);
        });
        runner.add(Sender::new(self.tenancy.clone(), self.outbound.clone(), self.due.clone()));
        runner.add(Retention { db: self.db.clone(), settings: self.settings });
    }

    /// Tells streams of usage as it is recorded, until the channel ends.
    pub fn listen_to_usage(&self, recorded: &UsageSignals) {
        tokio::spawn(realtime::tell_usage(self.hub.clone(), self.db.clock().clone(), recorded.listen()));
    }

    /// Makes up for what happened before this room was. Call it once the outbox is open.
    pub async fn load(&self) -> Result<()> {
        self.hub.start_at(self.db.read(spine::outbox::last_position).await?);
        deliveries::settle_apps(self).await
    }

    /// How many files a node may have open when it is full: connections, streams among them, and deliveries.
    pub fn files_wanted(&self) -> u64 {
        (self.settings.most_streams / 3 * 4 + sender::ON_THE_WIRE + 256) as u64
    }

    /// Ends all streams and takes in no more: a node that stops would wait for them.
    pub fn end_streams(&self) {
        self.hub.close();
        self.watchers.close();
    }
}

/// The endpoints that were disabled because too many deliveries in a row did not arrive, for diagnostics.
pub fn given_up(tx: &mut Tx<'_>) -> Result<Vec<endpoints::GivenUp>> {
    endpoints::given_up(tx)
}

impl AsRef<Tenancy> for Signals {
    fn as_ref(&self) -> &Tenancy {
        &self.tenancy
    }
}

impl AsRef<OperatorKey> for Signals {
    fn as_ref(&self) -> &OperatorKey {
        &self.tenancy.operator
    }
}

pub fn routes() -> Routes<Signals> {
    events::routes().merge(deliveries::routes()).merge(endpoints::routes()).merge(realtime::routes())
}
