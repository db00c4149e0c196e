//! What whoever runs or builds the app asks about billing: why something is as it is, what a change would do, and how a
//! subscription of the sandbox behaves when time and money take their course.

mod dry_run;
mod explain;
mod simulate;

use web::Routes;

use crate::Billing;

pub fn routes() -> Routes<Billing> {
    explain::routes().merge(simulate::routes()).merge(dry_run::routes())
}
