//! Where archives are while they are made or read: a folder of their own in the data folder, removed afterwards.

use std::path::{Path, PathBuf};

use kernel::{Entropy, Result};

use super::unreadable;

const NAME: &str = "archives";

/// A folder for one archive, which goes with everything in it.
pub(super) struct WorkFolder(PathBuf);

impl WorkFolder {
    pub(super) fn create(data_folder: &Path, entropy: &Entropy) -> Result<Self> {
        let folder = Self(data_folder.join(NAME).join(entropy.base62(16)));
        store::private::create_folder(&folder.0).map_err(unreadable)?;
        Ok(folder)
    }

    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // What cannot be removed now goes at the next start.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes what a server that was killed has left. Before it serves.
pub(crate) fn clear(data_folder: &Path) {
    let _ = std::fs::remove_dir_all(data_folder.join(NAME));
}
