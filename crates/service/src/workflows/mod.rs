//! What spans several rooms, with its routes: making a workspace, deleting one, and saying beforehand what would go.

mod departure;
mod new_password;
mod provider_sign_up;
mod translation;
mod workspace_creation;
mod workspace_deletion;

use web::Routes;

pub use departure::{Blocker, Departure, Farewell, LeavingBilling};
pub use workspace_creation::{NewOwner, NewTenant, create_workspace};
pub use workspace_deletion::{DeletionPreview, delete_workspace, preview_deletion};

use crate::Core;

pub fn routes() -> Routes<Core> {
    workspace_creation::routes()
        .merge(workspace_deletion::routes())
        .merge(new_password::routes())
        .merge(provider_sign_up::routes())
        .merge(translation::routes())
}
