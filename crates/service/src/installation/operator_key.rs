//! The operator key's life: made with the store, replaced by its holder or by whoever has the store and its master key,
//! and kept in `operator.key` when it was generated here.
//!
//! A new key is staged in a file of its own before the store takes it, and gets its name afterwards: whenever the
//! process ends, one of the two files holds the key that the store accepts.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ::store::{Db, Tx};
use kernel::{Code, Entropy, Error, Result, Secret, Timestamp};
use spine::{Installation, emit};
use tenancy::operator_key::{self, OperatorKeyState};
use tokio::sync::Mutex;

use super::{key_files::KeyFile, keys::Name};
use crate::facts::OperatorKeyReplaced;

/// How long the key before works on, so that scripts can be changed over.
const OVERLAP: Duration = Duration::from_secs(3600);

const STAGED: &str = "operator.key.new";

pub(super) fn generate(entropy: &Entropy) -> Secret<String> {
    Secret::new(format!("op_{}", entropy.base62(43)))
}

/// Where this node keeps an operator key that was generated. Cheap to clone.
#[derive(Clone)]
pub struct OperatorKeyFile {
    folder: Arc<Path>,
    /// One change at a time: they share the name of the staged file.
    changing: Arc<Mutex<()>>,
}

/// What a change of the operator key led to.
pub struct Replacement {
    pub key: Secret<String>,
    /// Until when the key before works.
    pub previous_until: Timestamp,
}

impl OperatorKeyFile {
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.into(), changing: Arc::default() }
    }

    /// Makes `key`, or a generated one, the present operator key. With `now` the one before ends at once.
    pub async fn replace(&self, db: &Db, key: Option<Secret<String>>, now: bool) -> Result<Replacement> {
        let _one_at_a_time = self.changing.lock().await;
        let generated = key.is_none();
        let key = key.unwrap_or_else(|| generate(db.entropy()));
        let file = KeyFile::in_folder(&self.folder, Name::OPERATOR.file);
        // A key that was given is its giver's to keep; but a file with the one before would mislead.
        let staged = (generated || file.0.exists()).then(|| KeyFile::in_folder(&self.folder, STAGED));
        if let Some(staged) = &staged {
            staged.replace(&key)?;
        }
        let new = key.clone();
        let previous_until = db.write(move |tx| replace(tx, &new, if now { Duration::ZERO } else { OVERLAP })).await;
        let Some(staged) = staged else { return Ok(Replacement { key, previous_until: previous_until? }) };
        match previous_until {
            Ok(previous_until) => {
                staged.rename_to(&file)?;
                Ok(Replacement { key, previous_until })
            }
            Err(error) => {
                // When nobody knows what became of the transaction, the staged key may be the present one.
                if error.code() != Code::CommitUnknown {
                    staged.remove();
                }
                Err(error)
            }
        }
    }
}

fn replace(tx: &mut Tx<'_>, key: &Secret<String>, overlap: Duration) -> Result<Timestamp> {
    tx.lock(&::store::WholeDatabase("installation"))?;
    let until = tx.now().plus(overlap);
    match operator_key::standing(tx, key.expose())? {
        None => operator_key::replace(tx, key.expose(), until)?,
        Some(OperatorKeyState::Present) => return Err(Error::invalid("key", "is already the operator key")),
        Some(OperatorKeyState::Replaced(_)) => {
            return Err(Error::invalid("key", "was the operator key before; choose another"));
        }
    }
    emit(tx, Installation, &OperatorKeyReplaced { previous_until: until })?;
    Ok(until)
}

/// The operator key to start a store with that has one already, and where it is kept. A key that was replaced is told
/// apart from one that was never known: the first is a reason for a word, the second for a refusal.
pub(super) async fn recognise(
    db: &Db,
    given: Option<Secret<String>>,
    folder: &Path,
    home: &str,
) -> Result<Option<PathBuf>> {
    let (file, staged) = (KeyFile::in_folder(folder, Name::OPERATOR.file), KeyFile::in_folder(folder, STAGED));
    let mut at_hand: Vec<(Secret<String>, Option<PathBuf>)> = given.map(|key| (key, None)).into_iter().collect();
    for file in [&file, &staged] {
        at_hand.extend(file.read()?.map(|key| (key, Some(file.0.clone()))));
    }
    if at_hand.is_empty() {
        let why = "is missing: none was given, and the data folder does not hold the one";
        return Err(Name::OPERATOR.refused(why, home));
    }
    let mut replaced = None;
    for (key, found) in at_hand {
        let standing = db.read(move |tx| operator_key::standing(tx, key.expose())).await?;
        match (standing, found) {
            (Some(OperatorKeyState::Present), Some(path)) if path == staged.0 => {
                // The process ended between the change and its last step.
                staged.rename_to(&file)?;
                return Ok(Some(file.0));
            }
            (Some(OperatorKeyState::Present), found) => return Ok(found),
            (Some(OperatorKeyState::Replaced(until)), found) => replaced = replaced.or(Some((found, until))),
            // Whoever configures a key means that one.
            (None, None) => break,
            (None, Some(_)) => {}
        }
    }
    let (found, until) = replaced.ok_or_else(|| Name::OPERATOR.refused("is not the one", home))?;
    tracing::warn!(%until, "the operator key that this node was given has been replaced; it works no longer than until then");
    Ok(found)
}

/// After a restore: whoever has the backup and its master key is the operator, with the key that is given, found in the
/// data folder, or made. Returns the file that holds it, unless configuration gave it.
pub(super) async fn take_over(db: &Db, given: Option<Secret<String>>, folder: &Path) -> Result<Option<PathBuf>> {
    let file = KeyFile::in_folder(folder, Name::OPERATOR.file);
    let (key, kept) = match given {
        Some(key) => (key, None),
        None => match file.read()? {
            Some(key) => (key, Some(file.0)),
            None => {
                let key = generate(db.entropy());
                file.write(&key)?;
                (key, Some(file.0))
            }
        },
    };
    db.write(move |tx| {
        tx.lock(&::store::WholeDatabase("installation"))?;
        match operator_key::standing(tx, key.expose())? {
            Some(OperatorKeyState::Present) => Ok(()),
            Some(OperatorKeyState::Replaced(_)) => {
                Err(Error::new(Code::StorageUnavailable, "The operator key was replaced before; give another one."))
            }
            None => operator_key::replace(tx, key.expose(), tx.now()),
        }
    })
    .await?;
    Ok(kept)
}
