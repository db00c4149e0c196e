//! The data folder belongs to the user that the service runs as, and to nobody else.

use std::path::{Path, PathBuf};

use ::store::private;
use kernel::{Code, Error, Result};

/// What this program keeps in its folder, beside the database.
const KEPT: &[&str] =
    &["lock", "master.key", "operator.key", "operator.key.new", "first-app.key", "server.sock", "backups"];

/// Makes the folder with mode 0700. In one that exists, whatever is ours and open to others is closed to them.
pub(crate) fn protect(folder: &Path) -> Result<()> {
    let failed = |path: &Path, error: std::io::Error| {
        Error::new(Code::StorageUnavailable, format!("Cannot make {} private: {error}.", path.display()))
    };
    private::create_folder(folder).map_err(|error| failed(folder, error))?;
    for path in [folder.to_owned()].into_iter().chain(KEPT.iter().map(|name| folder.join(name))) {
        if private::restrict(&path).map_err(|error| failed(&path, error))? {
            tracing::warn!(path = %path.display(), "it was open to other users of this machine, and no longer is");
        }
    }
    Ok(())
}

/// The folder and what lies in it, as far as others on this machine may do something with it.
pub(crate) fn open_to_others(folder: &Path) -> Vec<PathBuf> {
    let inside = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let open = |path: &PathBuf| matches!(private::is_private(path), Ok(false));
    [folder.to_owned()].into_iter().chain(inside).filter(open).collect()
}
