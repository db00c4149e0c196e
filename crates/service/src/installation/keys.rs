//! The operator key and the master key: given by configuration, found in the data folder, or made for a new store.
//!
//! The store keeps a check value of each, so that a node with another key is refused before it can do harm.

use std::path::{Path, PathBuf};

use ::store::{DatabaseUrl, Db, Tx};
use kernel::{Code, Entropy, Error, Result, Secret};
use tenancy::operator_key as operator_keys;
use vault::{Keyring, MasterKey};

use super::{key_files::KeyFile, operator_key, store};

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// To serve it, and to make it where there is none.
    Serve,
    /// For one command of the command line, which never makes a store.
    Command,
}

/// A command was run on nothing: in the wrong folder, mostly, or without the settings that the server has.
pub(crate) fn no_store(database: &DatabaseUrl) -> Error {
    let place = match database {
        DatabaseUrl::Sqlite(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string(),
        DatabaseUrl::Postgres(_) => database.to_string(),
    };
    Error::new(
        Code::StorageUnavailable,
        format!(
            "There is no Tenantry store in {place}. Name the right one with --data-dir or --database-url; a new one is \
             made by tenantry serve or tenantry restore."
        ),
    )
}

/// What configuration says about the keys.
pub struct GivenKeys {
    pub operator: Option<Secret<String>>,
    pub master: Option<Secret<String>>,
    pub master_previous: Option<Secret<String>>,
    /// Where keys are looked for, and written when they are made.
    pub folder: PathBuf,
}

/// The keys this node works with, checked against the store.
pub struct InstallationKeys {
    pub keyring: Keyring,
    /// The file that holds the operator key, unless configuration gave it.
    pub operator_file: Option<PathBuf>,
}

const MASTER_CHECK: &str = "master_key_check";
const KEY_HOME: &str = "key_home";
const MISSING: &str = "is missing: none was given, and the data folder does not hold the one";

/// The check values of a store that has been set up.
struct StoredKeys {
    master: String,
    home: String,
}

/// A key that was found or made, and where.
struct Candidate {
    key: Secret<String>,
    file: Option<KeyFile>,
    made: bool,
}

/// Finds or makes the keys, and refuses to continue with others than the store was set up with. A command needs no operator
/// key: who can open the store with its master key is the operator.
pub async fn settle_keys(
    db: &Db,
    database: &DatabaseUrl,
    given: GivenKeys,
    opening: Opening,
) -> Result<InstallationKeys> {
    let stored = read_stored(db).await?;
    if stored.is_none() && opening == Opening::Command {
        return Err(no_store(database));
    }
    let entropy = db.entropy().clone();
    let master = candidate(&Name::MASTER, given.master, &given.folder, stored.as_ref(), || {
        MasterKey::generate(&entropy).to_text()
    })?;
    let keyring = keyring(&master.key, given.master_previous.as_ref(), entropy.clone())?;
    let mut operator = given.operator;
    let stored = match stored {
        Some(stored) => stored,
        None => {
            let made = candidate(&Name::OPERATOR, operator, &given.folder, None, || operator_key::generate(&entropy))?;
            let home = home(&given.folder, made.file.is_some() || master.file.is_some());
            let (stored, ours) = store_checks(db, &made.key, keyring.check_value(), home).await?;
            if !ours {
                // Another node was faster; what was made here opens nothing.
                [&made, &master]
                    .into_iter()
                    .filter(|key| key.made)
                    .filter_map(|key| key.file.as_ref())
                    .for_each(KeyFile::remove);
            }
            operator = made.file.is_none().then_some(made.key);
            stored
        }
    };
    if !keyring.matches_check_value(&stored.master) {
        return Err(Name::MASTER.refused("is not the one", &stored.home));
    }
    let operator_file = match opening {
        Opening::Serve => operator_key::recognise(db, operator, &given.folder, &stored.home).await?,
        Opening::Command => None,
    };
    Ok(InstallationKeys { keyring, operator_file })
}

/// After a restore: the operator key and the place of the keys are those of the new machine. Returns the file that holds
/// the operator key, unless configuration gave it.
pub(super) async fn settle_restored(db: &Db, given: GivenKeys) -> Result<Option<PathBuf>> {
    let kept = operator_key::take_over(db, given.operator, &given.folder).await?;
    let home = home(&given.folder, kept.is_some() || given.master.is_none());
    db.write(move |tx| store::replace(tx, KEY_HOME, &home)).await?;
    Ok(kept)
}

/// After everything was sealed again: from now on only the present master key counts.
pub(super) async fn adopt_master_key(db: &Db, keyring: &Keyring) -> Result<()> {
    let check = keyring.check_value().to_owned();
    db.write(move |tx| store::replace(tx, MASTER_CHECK, &check)).await
}

/// Refuses to continue without the master key that the store was set up with.
pub(super) async fn check_master_key(db: &Db, given: &GivenKeys) -> Result<()> {
    let stored = read_stored(db).await?.ok_or_else(|| Error::internal("a store without check values"))?;
    match present_keyring(given, db.entropy().clone())? {
        Some(keyring) if keyring.matches_check_value(&stored.master) => Ok(()),
        Some(_) => Err(Name::MASTER.refused("is not the one", &stored.home)),
        None => Err(Name::MASTER.refused(MISSING, &stored.home)),
    }
}

/// Whether nothing waits to be sealed again under the current master key.
pub(crate) fn is_settled(tx: &mut Tx<'_>, keyring: &Keyring) -> Result<bool> {
    Ok(store::find(tx, MASTER_CHECK)?.is_some_and(|check| check == keyring.check_value()))
}

pub(super) struct Name {
    what: &'static str,
    variable: &'static str,
    pub(super) file: &'static str,
    /// What else can be done.
    instead: &'static str,
}

impl Name {
    pub(super) const OPERATOR: Self = Self {
        what: "operator key",
        variable: "TENANTRY_OPERATOR_KEY",
        file: "operator.key",
        instead: " When it is lost, tenantry operator-key rotate makes a new one.",
    };
    const MASTER: Self = Self { what: "master key", variable: "TENANTRY_MASTER_KEY", file: "master.key", instead: "" };

    pub(super) fn refused(&self, why: &str, home: &str) -> Error {
        let Self { what, variable, file, instead } = self;
        Error::new(
            Code::StorageUnavailable,
            format!(
                "The {what} {why} that this store was set up with. Set {variable} to it, or put it into {file} in the \
                 data folder. The first node keeps it here: {home}.{instead}"
            ),
        )
    }
}

fn candidate(
    name: &Name,
    given: Option<Secret<String>>,
    folder: &Path,
    stored: Option<&StoredKeys>,
    make: impl FnOnce() -> Secret<String>,
) -> Result<Candidate> {
    if let Some(key) = given {
        return Ok(Candidate { key, file: None, made: false });
    }
    let file = KeyFile::in_folder(folder, name.file);
    if let Some(key) = file.read()? {
        return Ok(Candidate { key, file: Some(file), made: false });
    }
    if let Some(stored) = stored {
        return Err(name.refused(MISSING, &stored.home));
    }
    let key = make();
    file.write(&key)?;
    Ok(Candidate { key, file: Some(file), made: true })
}

/// The keyring as configured or found in the data folder, if there is a master key at all.
pub(super) fn present_keyring(given: &GivenKeys, entropy: Entropy) -> Result<Option<Keyring>> {
    let master = match &given.master {
        Some(key) => Some(key.clone()),
        None => KeyFile::in_folder(&given.folder, Name::MASTER.file).read()?,
    };
    master.map(|master| keyring(&master, given.master_previous.as_ref(), entropy)).transpose()
}

fn keyring(master: &Secret<String>, previous: Option<&Secret<String>>, entropy: Entropy) -> Result<Keyring> {
    let parse = |key: &Secret<String>, variable: &str| {
        key.expose()
            .parse::<MasterKey>()
            .map_err(|_| Error::new(Code::StorageUnavailable, format!("{variable} must be 32 bytes in base64 or hex.")))
    };
    let current = parse(master, "TENANTRY_MASTER_KEY")?;
    let previous = previous.map(|key| parse(key, "TENANTRY_MASTER_KEY_PREVIOUS")).transpose()?;
    Ok(Keyring::new(&current, previous.as_ref(), entropy))
}

async fn read_stored(db: &Db) -> Result<Option<StoredKeys>> {
    db.read(|tx| {
        let home = store::find(tx, KEY_HOME)?.unwrap_or_default();
        let master = store::find(tx, MASTER_CHECK)?;
        Ok(master.map(|master| StoredKeys { master, home }))
    })
    .await
}

/// What the store holds in the end, and whether it came from here.
async fn store_checks(db: &Db, operator: &Secret<String>, check: &str, home: String) -> Result<(StoredKeys, bool)> {
    let (operator, check) = (operator.clone(), check.to_owned());
    let ours = db
        .write(move |tx| {
            tx.lock(&::store::WholeDatabase("installation"))?;
            let ours = store::insert(tx, MASTER_CHECK, &check)?;
            if ours {
                operator_keys::replace(tx, operator.expose(), tx.now())?;
                store::insert(tx, KEY_HOME, &home)?;
            }
            Ok(ours)
        })
        .await?;
    let stored = read_stored(db).await?.ok_or_else(|| Error::internal("the check values were just stored"))?;
    Ok((stored, ours))
}

/// A word for whoever looks for the keys later: which machine and folder.
fn home(folder: &Path, in_folder: bool) -> String {
    if !in_folder {
        return "the configuration of the node that set the store up".to_owned();
    }
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.trim() {
        "" => folder.display().to_string(),
        host => format!("{} on {host}", folder.display()),
    }
}
