//! The installation as a whole: its two keys and its first run.

mod first_run;
mod folder;
mod key_files;
mod keys;
mod last_backup;
mod moving;
mod operator_key;
mod reseal;
mod restore;
mod store;

pub use first_run::{FirstRun, first_run};
pub(crate) use folder::{open_to_others, protect};
pub use keys::{GivenKeys, InstallationKeys, Opening, settle_keys};
pub(crate) use keys::{is_settled, no_store};
pub(crate) use last_backup::{last_backup, note_backup};
pub(crate) use moving::settle_move;
pub use moving::{estimate_move, migrate_to};
pub use operator_key::{OperatorKeyFile, Replacement};
pub(crate) use reseal::Resealer;
pub(crate) use restore::backup_info;
pub use restore::{Recovered, restore};
