//! Messages as files in a folder: for tests, and for handing them to another program.

use std::path::{Path, PathBuf};

use super::SendFailure;

/// The folder of a `file:DIR` URL.
pub(crate) fn folder(path: &str) -> Result<PathBuf, String> {
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() {
        return Err("needs a folder, such as file:./outgoing".into());
    }
    Ok(path.into())
}

/// Whoever watches the folder sees a whole file or none. Writing the same message again replaces it. Messages hold live
/// links and codes, so only the owner may read them.
pub(crate) async fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), SendFailure> {
    let unfinished = folder.join(format!(".{name}.part"));
    let attempt = async {
        store::private::create_folder(folder)?;
        store::private::claim_file(&unfinished)?;
        tokio::fs::write(&unfinished, bytes).await?;
        tokio::fs::rename(&unfinished, folder.join(name)).await
    };
    attempt.await.map_err(|error| SendFailure::passing(format!("cannot write into {}: {error}", folder.display())))
}
