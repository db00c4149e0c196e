//! One's own names, for whoever changes them on a page.

use kernel::{OptionalName, Result};
use store::Tx;
use tenancy::{
    callers::SignedIn,
    members::{self, MemberChanges},
};
use web::Patch;

use crate::login::own;

/// Changes first and last name, as `PUT /account/me` does.
pub fn rename(tx: &mut Tx<'_>, user: &SignedIn, first: &OptionalName, last: &OptionalName) -> Result<()> {
    own::homely_login(tx, user)?;
    let name = |name: &OptionalName| Patch::Value(name.clone());
    let changes = MemberChanges { first_name: name(first), last_name: name(last), ..MemberChanges::default() };
    members::update_self(tx, user.app(), user.tenant(), user.user(), &changes).map(|_| ())
}
