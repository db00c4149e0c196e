//! A sample of each event type: what people build their receivers against before anything has happened.

use std::collections::BTreeMap;

use billing::{
    facts::{
        DriftData, EntitlementsChanged, PaymentFailed, PaymentSucceeded, PlanChangeData, QuotaExhausted,
        SubscriptionCanceled, SubscriptionCreated, SubscriptionData, SubscriptionPastDue, SubscriptionPlanChanged,
        SubscriptionReactivated, SubscriptionTrialEnded, SubscriptionTrialStarted, UsageDriftResolved,
        UsageDriftUnrecoverable,
    },
    subscriptions::Status,
};
use kernel::{Currency, Id, MemberId, TenantId, Timestamp, UserId};
use serde_json::Number;
use tenancy::facts::{
    MemberData, TenantCreated, TenantDeleted, TenantUpdated, TenantUserCreated, TenantUserDeleted, TenantUserUpdated,
    WorkspaceData,
};

/// A value as it could be in an event of this workspace.
pub(super) trait Sample: Sized {
    fn sample(workspace: TenantId) -> Self;
}

macro_rules! samples {
    ($($type:ident: $workspace:ident => $sample:expr;)*) => { $(
        impl Sample for $type {
            fn sample($workspace: TenantId) -> Self {
                $sample
            }
        }
    )* };
}

samples! {
    TenantCreated: workspace => Self(tenant(workspace));
    TenantUpdated: workspace => Self(tenant(workspace));
    TenantDeleted: workspace => Self(tenant(workspace));
    TenantUserCreated: workspace => Self(member(workspace));
    TenantUserUpdated: workspace => Self(member(workspace));
    TenantUserDeleted: workspace => Self(member(workspace));
    SubscriptionCreated: workspace => Self(subscription(workspace, Status::Active));
    SubscriptionPlanChanged: workspace => Self(PlanChangeData {
        workspace_id: workspace,
        subscription_id: sample_id(),
        plan: "pro".into(),
        status: Status::Active,
        ends_at: None,
        from_plan: "free".into(),
        to_plan: "pro".into(),
    });
    SubscriptionTrialStarted: workspace => Self(ending(subscription(workspace, Status::Trial)));
    SubscriptionTrialEnded: workspace => Self(ending(subscription(workspace, Status::Canceled)));
    SubscriptionPastDue: workspace => Self(subscription(workspace, Status::PastDue));
    SubscriptionReactivated: workspace => Self(subscription(workspace, Status::Active));
    SubscriptionCanceled: workspace =>
        Self(ending(subscription(workspace, Status::CancelAtPeriodEnd)));
    PaymentSucceeded: workspace => Self {
        workspace_id: workspace,
        amount: Number::from(29),
        currency: euro(),
        invoice_id: "in_1".into(),
        tax_amount: None,
    };
    PaymentFailed: workspace => Self {
        workspace_id: workspace,
        amount: Number::from(29),
        currency: euro(),
        invoice_id: "in_1".into(),
        attempt: 1,
        past_due_reason: "card_declined".into(),
        card_last4: Some("0341".into()),
    };
    QuotaExhausted: workspace => Self {
        workspace_id: workspace,
        metric: "api_calls".into(),
        used: 1_000,
        limit: 1_000,
        period_start: Timestamp::from_seconds(1_767_225_600),
        period_end: Timestamp::from_seconds(1_769_904_000),
    };
    EntitlementsChanged: workspace => Self {
        workspace_id: workspace,
        entitlements: BTreeMap::from([("reports".into(), true), ("sso".into(), false)]),
        changed: vec!["reports".into()],
    };
    UsageDriftResolved: workspace => Self(drift(workspace));
    UsageDriftUnrecoverable: workspace => Self(drift(workspace));
}

fn sample_id<K>() -> Id<K> {
    Id::from_u128(0x019b_0000_0000_7000_8000_0000_0000_0001)
}

fn euro() -> Currency {
    "EUR".parse().expect("the euro is a currency")
}

fn tenant(workspace: TenantId) -> WorkspaceData {
    WorkspaceData { id: workspace, name: "Acme".into(), plan: Some("pro".into()) }
}

fn member(workspace: TenantId) -> MemberData {
    let (tenant_user_id, user_id): (MemberId, UserId) = (sample_id(), sample_id());
    let (email, role) = ("ada@acme.example".into(), "MEMBER".into());
    MemberData { workspace_id: workspace, tenant_user_id, user_id, email, role, enabled: true }
}

fn subscription(workspace: TenantId, status: Status) -> SubscriptionData {
    let subscription_id = sample_id();
    SubscriptionData { workspace_id: workspace, subscription_id, plan: "pro".into(), status, ends_at: None }
}

fn ending(subscription: SubscriptionData) -> SubscriptionData {
    SubscriptionData { ends_at: Some(Timestamp::from_seconds(1_769_904_000)), ..subscription }
}

fn drift(workspace: TenantId) -> DriftData {
    DriftData { workspace_id: workspace, metric: "api_calls".into(), expected: 1_000, actual: 990 }
}
