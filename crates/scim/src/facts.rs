//! What this room tells, beside what members and invitations tell of themselves.

use kernel::MemberId;
use spine::{FactKind as _, Reader};
use tenancy::facts::{Change, InvitationDeleted, TenantUserDeleted};

use crate::ScimGroupId;

spine::facts! {
    /// A directory provisioned, changed or deprovisioned a user.
    ScimUserChanged = "scim.user_changed" {
        tenant_user_id: MemberId,
        user_name: String,
        active: bool,
        change: Change,
    }
    /// A group was made, changed or deleted by a directory, or carries another role.
    ScimGroupChanged = "scim.group_changed" { group_id: ScimGroupId, display_name: String, change: Change }
}

/// What forgets what a directory said of users who are gone.
pub(crate) const CONSUMER: Reader = Reader::of("scim", &[TenantUserDeleted::KIND, InvitationDeleted::KIND]);

/// Who in this room reads facts.
pub fn readers() -> Vec<Reader> {
    vec![CONSUMER]
}
