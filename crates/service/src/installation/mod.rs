//! The installation as a whole: its two keys and its first run.

mod first_run;
mod key_files;
mod keys;
mod store;

pub use first_run::{FirstRun, first_run};
pub use keys::{GivenKeys, InstallationKeys, settle_keys};
pub(crate) use keys::adopt_master_key;
