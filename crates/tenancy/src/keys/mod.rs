//! App API keys: `tnt_` and 43 random characters, of which only the SHA-256 is stored.

pub mod http;
mod store;

use std::{borrow::Cow, sync::Arc};

use ::store::{Db, Tx};
use kernel::{AppId, Error, KeyId, Name, Page, Result, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use spine::{Cached, News, emit};
use vault::hash_token;
use web::Validate;

use crate::{
    callers::privileges::{self, BUILT_IN},
    facts::{AppDeleted, KeyCreated, KeyRevoked},
};

const PREFIX: &str = "tnt_";
/// 43 characters of base62 hold 256 bits.
const RANDOM_LENGTH: usize = 43;

/// A key as it is listed. The key itself cannot be shown again: it is not stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRecord {
    pub id: KeyId,
    #[serde(skip)]
    pub app: AppId,
    pub name: String,
    pub privileges: Arc<[String]>,
    /// Whether it was made without a list of privileges, and may grant any.
    #[serde(skip)]
    pub unrestricted: bool,
    pub created_at: Timestamp,
}

/// The body of `POST /admin/apps/{app_id}/keys`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct NewKey {
    pub name: Name,
    /// Absent: every built-in privilege except the destructive two. Only destructive ones: these in addition. Otherwise
    /// exactly the listed ones.
    #[schemars(with = "Option<Vec<BuiltInPrivilege>>", length(min = 1))]
    pub privileges: Option<Vec<String>>,
}

/// The names of built-in privileges in the documentation.
enum BuiltInPrivilege {}

impl JsonSchema for BuiltInPrivilege {
    fn schema_name() -> Cow<'static, str> {
        "BuiltInPrivilege".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let keys: Vec<&str> = BUILT_IN.iter().map(|known| known.key).collect();
        json_schema!({ "type": "string", "enum": keys, "x-message": "must be a built-in privilege" })
    }
}

impl Validate for NewKey {}

impl NewKey {
    fn listed(&self) -> &[String] {
        self.privileges.as_deref().unwrap_or_default()
    }

    /// Nothing is listed, or only what is opted in to.
    fn is_unrestricted(&self) -> bool {
        self.listed().iter().all(|key| privileges::is_destructive(key))
    }

    fn granted(&self) -> Vec<String> {
        BUILT_IN
            .iter()
            .filter(|known| {
                self.listed().iter().any(|key| key == known.key)
                    || (self.is_unrestricted() && !privileges::is_destructive(known.key))
            })
            .map(|known| known.key.to_owned())
            .collect()
    }
}

/// A new key, shown this once.
pub struct KeyWithSecret {
    pub key: String,
    pub record: KeyRecord,
}

pub fn create(tx: &mut Tx<'_>, app: AppId, new: &NewKey) -> Result<KeyWithSecret> {
    let key = format!("{PREFIX}{}", tx.entropy().base62(RANDOM_LENGTH));
    let record = KeyRecord {
        id: tx.new_id(),
        app,
        name: new.name.trim().to_owned(),
        privileges: new.granted().into(),
        unrestricted: new.is_unrestricted(),
        created_at: tx.now(),
    };
    store::insert(tx, &record, &hash_token(&key))?;
    let (name, privileges) = (record.name.clone(), record.privileges.to_vec());
    emit(tx, app, &KeyCreated { key_id: record.id, name, privileges })?;
    Ok(KeyWithSecret { key, record })
}

/// Newest first.
pub fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<KeyRecord>> {
    store::list(tx, app, page)
}

/// The key is refused from the next request on, on every node.
pub fn revoke(tx: &mut Tx<'_>, keys: &Keys, app: AppId, id: KeyId) -> Result<()> {
    if !store::delete(tx, app, id)? {
        return Err(Error::not_found("API key"));
    }
    emit(tx, app, &KeyRevoked { key_id: id })?;
    let keys = keys.clone();
    tx.on_commit(move || keys.forget());
    Ok(())
}

pub(crate) fn delete_all(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    store::delete_all(tx, app)
}

/// Finds the record of a presented key: from memory where this process is the only one, else from the database on
/// every call, so that a revocation counts at once on every node.
#[derive(Clone)]
pub struct Keys {
    db: Db,
    known: Cached<String, Option<Arc<KeyRecord>>>,
}

/// Digests remembered, valid or not.
const REMEMBERED: usize = 10_000;

impl Keys {
    pub fn new(db: Db) -> Self {
        Self { db, known: Cached::new(REMEMBERED) }
    }

    pub async fn find(&self, presented: &str) -> Result<Arc<KeyRecord>> {
        // Anything of another form cannot be a key: spare the database.
        let random = presented.strip_prefix(PREFIX).unwrap_or_default();
        if random.len() != RANDOM_LENGTH || !random.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(unknown());
        }
        let digest = hash_token(presented);
        let record = if self.db.is_single_node() {
            self.known.get_or_read(digest, |digest| self.read(digest)).await?
        } else {
            self.read(digest).await?
        };
        record.ok_or_else(unknown)
    }

    async fn read(&self, digest: String) -> Result<Option<Arc<KeyRecord>>> {
        Ok(self.db.get_one::<KeyRecord>(store::FIND, &::store::args![digest]).await?.map(Arc::new))
    }

    /// A key or a whole app is gone. Both are rare, so everything is looked up again.
    pub(crate) fn forget(&self) {
        self.known.flush();
    }

    pub(crate) fn hear(&self, news: News<'_>) {
        match news {
            News::Fact(fact) if fact.is::<KeyRevoked>() || fact.is::<AppDeleted>() => self.forget(),
            News::Fact(_) => {}
            News::Gap => self.forget(),
        }
    }
}

fn unknown() -> Error {
    Error::credential("The API key is unknown or has been revoked.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(listed: Option<&[&str]>) -> Vec<String> {
        let privileges = listed.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
        NewKey { name: Name::from_static("k"), privileges }.granted()
    }

    #[test]
    fn a_key_has_everything_but_the_destructive_two() {
        let usual = granted(None);
        assert_eq!(usual.len(), BUILT_IN.len() - 2);
        assert!(!usual.iter().any(|key| privileges::is_destructive(key)));
    }

    #[test]
    fn naming_a_destructive_one_opts_in_and_naming_others_restricts() {
        let with_delete = granted(Some(&["APP_DELETE"]));
        assert!(with_delete.contains(&"APP_DELETE".to_owned()) && with_delete.contains(&"USER_READ".to_owned()));
        assert!(!with_delete.contains(&"TENANT_DELETE".to_owned()));
        assert_eq!(granted(Some(&["APP_READ"])), ["APP_READ"]);
        assert_eq!(granted(Some(&["TENANT_READ", "TENANT_DELETE"])), ["TENANT_READ", "TENANT_DELETE"]);
    }
}
