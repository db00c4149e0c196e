//! What workspaces pay for: the catalog of plans and taxes, subscriptions, entitlements and usage.
//!
//! This room alone writes the billing view of a workspace, in the transaction that changes what it says. It knows
//! nothing of login.

pub mod catalog;
pub mod entitlements;
pub mod facts;
pub mod live;
mod operator;
pub mod payment_details;
pub mod providers;
pub mod subscriptions;
mod tables;
pub mod usage;

use entitlements::Refreshing;
use providers::{
    sandbox::Charging,
    stripe::{
        StripeApi,
        callbacks::Acting,
        endpoints::{self, Registering},
        intents::Finishing,
    },
};
use spine::{Exclusive, Outbox, Runner, Signal};
use tenancy::{OperatorKey, Tenancy};
use web::Routes;

use subscriptions::Passing;
use usage::{Syncing, UsageIngestor, UsageSignals};

pub use catalog::{Offers, seed_first_plans};
pub use tables::TABLES;

/// What the routes of this room work with. Cheap to clone.
#[derive(Clone)]
pub struct Billing {
    pub tenancy: Tenancy,
    /// The plans that customers choose from.
    pub offers: Offers,
    /// The way of usage into the database.
    pub usage: UsageIngestor,
    /// What streams are told of it.
    pub usage_signals: UsageSignals,
    /// How a Stripe-compatible provider is reached.
    pub stripe: StripeApi,
    /// Rung when a provider told something.
    pub(crate) told: Signal,
}

impl Billing {
    /// Call it inside a Tokio runtime.
    pub fn new(tenancy: Tenancy, stripe: StripeApi) -> Self {
        let usage = tenancy.db.ingestor();
        let usage_signals = usage::signals::open(&tenancy.db);
        let offers = Offers::new(tenancy.db.clone());
        Self { tenancy, offers, usage, usage_signals, stripe, told: Signal::new() }
    }

    /// Adds the background work of this room.
    pub fn register(&self, outbox: &mut Outbox, runner: &Runner) {
        let (db, plans_changed) = (&self.tenancy.db, Signal::new());
        let heard = plans_changed.clone();
        outbox.follow(facts::PLAN_CHANGES, move |_| heard.wake());
        let offers = self.offers.clone();
        outbox.follow(facts::OFFERS, move |news| offers.hear(news));
        let tenancy = self.tenancy.clone();
        outbox.consume(endpoints::READER, move |tx, fact| endpoints::hear(tx, &tenancy, fact));
        runner.add(Exclusive::new(db, Passing { db: db.clone() }));
        runner.add(Exclusive::new(db, Charging { db: db.clone(), tenancy: self.tenancy.clone() }));
        runner.add(Exclusive::new(db, Finishing(self.clone())));
        runner.add(Acting { billing: self.clone(), told: self.told.clone() });
        runner.add(Exclusive::new(db, Registering(self.clone())));
        runner.add(Exclusive::new(db, Syncing(self.clone())));
        runner.add(Exclusive::new(db, Refreshing { db: db.clone(), plans_changed }));
    }
}

impl AsRef<Tenancy> for Billing {
    fn as_ref(&self) -> &Tenancy {
        &self.tenancy
    }
}

impl AsRef<OperatorKey> for Billing {
    fn as_ref(&self) -> &OperatorKey {
        &self.tenancy.operator
    }
}

pub fn routes() -> Routes<Billing> {
    catalog::plans::http::routes()
        .merge(catalog::taxes::http::routes())
        .merge(payment_details::http::routes())
        .merge(subscriptions::http::routes())
        .merge(entitlements::http::routes())
        .merge(entitlements::overrides::routes())
        .merge(usage::http::routes())
        .merge(providers::http::routes())
        .merge(operator::routes())
}
