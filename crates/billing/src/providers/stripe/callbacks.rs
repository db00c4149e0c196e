//! What the provider tells, acted on after it was kept: subscriptions are read from it again, payments come from the invoice in
//! the signed event. One that cannot be acted on now is tried again. Nodes do not share events out: acting on one twice at the
//! same time changes nothing.

use std::{collections::BTreeMap, time::Duration};

use ::store::{Tx, args};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use kernel::{AppId, Code, Money, Result, TenantId, Timestamp};
use spine::{Job, Signal, Worked, emit};
use tenancy::{
    App, Tenancy, apps,
    mails::{self, AppMail},
    members, workspaces,
};
use tokio::sync::watch;

use super::{
    events::{ProviderEvent, Subject},
    invoice::Invoice,
    store::{self, Waiting},
};
use crate::{
    Billing,
    facts::{PaymentFailed, PaymentSucceeded},
    providers::{Provider, store::insert_event},
};

/// Events per run, and how many things they are about are taken over at once.
const BATCH: i64 = 64;
const AT_ONCE: usize = 8;

/// Acts on what was told.
pub struct Acting {
    pub billing: Billing,
    /// Rung when something was told.
    pub told: Signal,
}

impl Job for Acting {
    fn name(&self) -> &'static str {
        "provider-events"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.told.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        let db = &self.billing.tenancy.db;
        let now = db.clock().now();
        let due = db.read(move |tx| tx.all::<Waiting>(store::EVENTS_DUE, &args![now, BATCH])).await?;
        let worked = Worked::some_if(!due.is_empty());
        let subjects = stream::iter(by_subject(due)).map(Ok);
        subjects.try_for_each_concurrent(AT_ONCE, |((app, subject), told)| self.act(app, subject, told)).await?;
        Ok(worked)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        let next: Option<(Option<Timestamp>,)> = self.billing.tenancy.db.get_one(store::NEXT_EVENT, &[]).await?;
        Ok(next.and_then(|(at,)| at))
    }
}

/// An event that waits, and what it says.
type Told = (Waiting, ProviderEvent);

/// Events about one thing at the provider are acted on together: it is read once, and they do not get in each other's way.
fn by_subject(due: Vec<Waiting>) -> BTreeMap<(AppId, Subject), Vec<Told>> {
    let mut subjects = BTreeMap::<_, Vec<Told>>::new();
    for waiting in due {
        let event = ProviderEvent::read(&waiting.payload);
        subjects.entry((waiting.app, event.subject())).or_default().push((waiting, event));
    }
    subjects
}

impl Acting {
    async fn act(&self, app: AppId, subject: Subject, told: Vec<Told>) -> Result<()> {
        let is_current = match self.billing.take_over(app, &subject).await {
            Ok(is_current) => is_current,
            Err(error) => {
                tracing::warn!(%app, ?subject, ?error, "what the payment provider tells of could not be taken over");
                return self.postpone(told.into_iter().map(|(waiting, _)| waiting).collect()).await;
            }
        };
        for (waiting, event) in told {
            let finished = self.billing.finish(app, &waiting, event, is_current).await;
            if let Err(error) = finished {
                tracing::warn!(%app, event = waiting.event, ?error, "a payment could not be written down");
                self.postpone(vec![waiting]).await?;
            }
        }
        Ok(())
    }

    async fn postpone(&self, events: Vec<Waiting>) -> Result<()> {
        let write = self.billing.tenancy.db.write(move |tx| {
            for Waiting { app, event, attempts, .. } in &events {
                let later = Duration::from_mins(1 << attempts.min(&8));
                store::postpone_event(tx, *app, event, tx.now().plus(later))?;
            }
            Ok(())
        });
        write.await
    }
}

impl Billing {
    /// Takes over how something stands at the provider; false when the app is not paid there any more, and nobody can be asked.
    async fn take_over(&self, app: AppId, subject: &Subject) -> Result<bool> {
        if !self.is_paid_at_stripe(app).await? {
            return Ok(false);
        }
        match subject {
            Subject::Session(id) => ignore_unknown(self.take_over_session(app, id).await.map(|_| ()))?,
            Subject::Subscription(id) => ignore_unknown(self.take_over_subscription(app, id).await)?,
            Subject::Nothing => {}
        }
        Ok(true)
    }

    async fn finish(&self, app: AppId, waiting: &Waiting, told: ProviderEvent, is_current: bool) -> Result<()> {
        let (tenancy, event) = (self.tenancy.clone(), waiting.event.clone());
        let write = self.tenancy.db.write(move |tx| {
            if !store::finish_event(tx, app, &event)? {
                return Ok(());
            }
            match &told {
                ProviderEvent::Invoice { invoice, paid } if is_current => tell(tx, &tenancy, app, invoice, *paid),
                _ => Ok(()),
            }
        });
        write.await
    }

    /// Whether whoever signed the event is somebody who can be asked.
    async fn is_paid_at_stripe(&self, app: AppId) -> Result<bool> {
        let tenancy = self.tenancy.clone();
        let read = self.tenancy.db.read(move |tx| {
            let app = apps::get(tx, app)?;
            crate::providers::of(tx, &tenancy, &app)
        });
        match read.await {
            Ok(provider) => Ok(matches!(provider, Provider::Stripe)),
            Err(error) if error.code() == Code::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Another system may use the same account: what is not ours is passed over.
pub(super) fn ignore_unknown(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.code() == Code::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// The payment that an invoice tells of. Nothing was paid by one over nothing.
fn tell(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, invoice: &Invoice, paid: bool) -> Result<()> {
    let Some(customer) = invoice.customer() else { return Ok(()) };
    let Some(tenant) = store::tenant_of_customer(tx, app, &customer)? else { return Ok(()) };
    let app = apps::get(tx, app)?;
    // It is about to go, and nobody is left to be told.
    if workspaces::billing_view(tx, app.id, tenant).is_err() {
        return Ok(());
    }
    let amount = if paid { invoice.paid() } else { invoice.due() };
    let Some(amount) = amount.filter(|amount| amount.minor > 0) else { return Ok(()) };
    // Several events may tell of the same payment.
    let once =
        if paid { format!("{} paid", invoice.id) } else { format!("{} failed {}", invoice.id, invoice.attempt()) };
    if !insert_event(tx, app.id, &once, None)? {
        return Ok(());
    }
    if paid {
        let fact = PaymentSucceeded {
            workspace_id: tenant,
            amount: amount.to_major(),
            currency: amount.currency,
            invoice_id: invoice.id.clone(),
            tax_amount: invoice.tax().map(Money::to_major),
        };
        return emit(tx, (app.id, tenant), &fact);
    }
    let fact = PaymentFailed {
        workspace_id: tenant,
        amount: amount.to_major(),
        currency: amount.currency,
        invoice_id: invoice.id.clone(),
        attempt: invoice.attempt(),
        past_due_reason: invoice.reason().to_owned(),
        card_last4: invoice.card_last4().map(str::to_owned),
    };
    emit(tx, (app.id, tenant), &fact)?;
    if invoice.attempt() == 1 { mail(tx, tenancy, &app, tenant, invoice) } else { Ok(()) }
}

/// The first failure is mailed to those who can do something about it.
fn mail(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, tenant: TenantId, invoice: &Invoice) -> Result<()> {
    let workspace = workspaces::get(tx, app.id, tenant)?.name;
    let link = invoice.hosted_invoice_url.clone().or(app.profile.ui_url.clone());
    let link = link.unwrap_or_else(|| tenancy.base_url.to_string());
    for to in members::owner_addresses(tx, app.id, tenant)? {
        let mail = AppMail::PaymentFailure { workspace: workspace.clone(), link: link.clone() };
        mails::queue(tx, tenancy, app, &to, &mail)?;
    }
    Ok(())
}
