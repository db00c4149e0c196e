//! What this room tells: facts about the catalog and about the plans of workspaces.

use kernel::TenantId;
use tenancy::facts::Change;

use crate::catalog::{PlanId, TaxId};

spine::facts! {
    /// A plan of the catalog was made, changed or deleted.
    PlanChanged = "plan.changed" { plan_id: PlanId, key: String, change: Change }
    /// A tax was made, changed or deleted.
    TaxChanged = "tax.changed" { tax_id: TaxId, name: String, change: Change }
    /// A workspace was put on another plan.
    SubscriptionPlanChanged = "subscription.plan_changed" {
        workspace_id: TenantId,
        /// The keys of the plans.
        from_plan: Option<String>,
        to_plan: Option<String>,
    }
    /// A workspace pays another price of the plan that it is on.
    PriceChanged = "subscription.price_changed" { workspace_id: TenantId, plan: Option<String> }
}
