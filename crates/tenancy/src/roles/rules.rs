//! What a role and a privilege must look like, and which changes of them are refused. Pure.

use kernel::{
    Code, Error, Key, Name, Result, Text,
    text::{KEY_PATTERN, NO_KEY},
    text_types,
};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Given, Patch, Validate};

use super::{OWNER, PrivilegeId, PrivilegeRecord, Role};
use crate::callers::privileges::BUILT_IN;

/// The body of `POST /account/role`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewRole {
    pub name: Name,
    pub key: Key,
    pub description: Option<Text>,
    /// Ids of privileges.
    #[schemars(length(min = 1))]
    pub privileges: Vec<PrivilegeId>,
    /// Takes the place of the default role so far.
    pub is_default: Option<bool>,
}

/// The body of `PUT /account/role/{role_id}`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleChange {
    pub name: Given<Name>,
    pub key: Given<Key>,
    pub description: Patch<Text>,
    /// Ids of privileges, in place of those so far.
    #[schemars(length(min = 1))]
    pub privileges: Given<Vec<PrivilegeId>>,
    /// `true` takes the place of the default role so far; the default role cannot be set to `false`.
    pub is_default: Given<bool>,
}

/// The body of `POST /account/role/privilege`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct NewPrivilege {
    pub key: PrivilegeKey,
    pub description: Option<Text>,
}

/// The body of `PUT /account/role/privilege/{privilege_id}`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PrivilegeChange {
    pub key: Given<PrivilegeKey>,
    pub description: Patch<Text>,
}

/// The scopes of OpenID Connect that an app may ask for.
pub const OIDC_SCOPES: [&str; 7] = ["openid", "profile", "email", "address", "phone", "onboarding", "tenant"];

/// A requested scope may name both scopes and privileges, so that a privilege of the same name could not be told apart.
fn reserved() -> Vec<&'static str> {
    OIDC_SCOPES.into_iter().chain(["offline_access"]).collect()
}

text_types! {
    /// A [`Key`] that is not the name of an OpenID Connect scope.
    PrivilegeKey {
        "pattern": KEY_PATTERN,
        "not": { "enum": reserved() },
        "x-message": NO_KEY,
    }
}

impl Validate for NewRole {}
impl Validate for RoleChange {}
impl Validate for NewPrivilege {}
impl Validate for PrivilegeChange {}

impl RoleChange {
    /// Everything but the privileges, which have to be looked up.
    pub(super) fn applied_to(&self, role: Role) -> Role {
        Role {
            name: self.name.clone().or(role.name),
            key: self.key.clone().or(role.key),
            description: self.description.clone().apply(Some(role.description)).unwrap_or_default(),
            is_default: self.is_default.or(role.is_default),
            ..role
        }
    }
}

impl PrivilegeChange {
    pub(super) fn applied_to(&self, record: PrivilegeRecord) -> PrivilegeRecord {
        PrivilegeRecord {
            key: self.key.clone().or(record.key),
            description: self.description.clone().apply(Some(record.description)).unwrap_or_default(),
            ..record
        }
    }
}

pub(super) fn check_change(role: &Role, change: &RoleChange) -> Result<()> {
    if role.key == OWNER && change.key.value().is_some_and(|key| key.as_str() != OWNER) {
        return Err(Error::new(Code::OwnerRoleProtected, "The key of the OWNER role cannot be changed."));
    }
    if role.is_default && change.is_default.value() == Some(&false) {
        let message = "An app always has a default role: make another role the default instead.";
        return Err(Error::new(Code::DefaultRoleRequired, message));
    }
    Ok(())
}

/// `held`: whether a member has the role.
pub(super) fn check_deletion(role: &Role, held: bool) -> Result<()> {
    if role.key == OWNER {
        return Err(Error::new(Code::OwnerRoleProtected, "The OWNER role cannot be deleted."));
    }
    if role.is_default {
        let message = "The default role cannot be deleted: make another role the default first.";
        return Err(Error::new(Code::DefaultRoleRequired, message));
    }
    if held {
        return Err(Error::new(Code::RoleInUse, "Members still have this role: assign them another one first."));
    }
    Ok(())
}

pub(super) fn check_privilege_change(record: &PrivilegeRecord, change: &PrivilegeChange) -> Result<()> {
    if is_built_in(record) && change.key.value().is_some_and(|key| key.as_str() != record.key) {
        return Err(built_in(record, "keeps its key"));
    }
    Ok(())
}

/// `only_in`: the keys of the roles that have no other privilege.
pub(super) fn check_privilege_deletion(record: &PrivilegeRecord, only_in: &[String]) -> Result<()> {
    if is_built_in(record) {
        return Err(built_in(record, "cannot be deleted"));
    }
    if !only_in.is_empty() {
        let message = format!("It is the only privilege of {}: assign another one first.", only_in.join(", "));
        return Err(Error::new(Code::LastPrivilege, message));
    }
    Ok(())
}

fn is_built_in(record: &PrivilegeRecord) -> bool {
    BUILT_IN.iter().any(|known| known.key == record.key)
}

fn built_in(record: &PrivilegeRecord, what: &str) -> Error {
    let message = format!("{} is built in, because operations of this service require it, and {what}.", record.key);
    Error::new(Code::BuiltInPrivilege, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(key: &str, is_default: bool) -> Role {
        Role {
            id: super::super::RoleId::from_u128(1),
            name: "Name".into(),
            key: key.into(),
            description: "Words".into(),
            privileges: Vec::new(),
            is_default,
        }
    }

    fn privilege(key: &str) -> PrivilegeRecord {
        PrivilegeRecord { id: PrivilegeId::from_u128(1), key: key.into(), description: String::new() }
    }

    fn change(json: &str) -> RoleChange {
        web::from_json(json.as_bytes()).expect("a valid change")
    }

    #[test]
    fn owner_keeps_its_key_and_may_say_so() {
        let refused = |key: &str| check_change(&role(OWNER, false), &change(&format!(r#"{{"key":"{key}"}}"#))).is_err();
        assert!(refused("BOSS"));
        assert!(!refused("OWNER"));
        assert!(check_change(&role(OWNER, false), &change(r#"{"name":"Boss"}"#)).is_ok());
    }

    #[test]
    fn the_default_role_is_only_replaced_never_unset() {
        for (is_default, json, fits) in [
            (true, r#"{"isDefault":false}"#, false),
            (true, r#"{"isDefault":true}"#, true),
            (false, r#"{"isDefault":false}"#, true),
            (false, r#"{"isDefault":true}"#, true),
        ] {
            assert_eq!(check_change(&role("A", is_default), &change(json)).is_ok(), fits, "{is_default} {json}");
        }
    }

    #[test]
    fn protected_and_held_roles_stay() {
        for (key, is_default, held, code) in [
            (OWNER, false, false, Some(Code::OwnerRoleProtected)),
            ("A", true, false, Some(Code::DefaultRoleRequired)),
            ("A", false, true, Some(Code::RoleInUse)),
            ("A", false, false, None),
        ] {
            assert_eq!(check_deletion(&role(key, is_default), held).err().map(|error| error.code()), code);
        }
    }

    #[test]
    fn built_in_privileges_change_only_their_words() {
        let change = |json: &str| web::from_json::<PrivilegeChange>(json.as_bytes()).expect("a valid change");
        assert!(check_privilege_change(&privilege("USER_READ"), &change(r#"{"description":"x"}"#)).is_ok());
        assert!(check_privilege_change(&privilege("USER_READ"), &change(r#"{"key":"X"}"#)).is_err());
        assert!(check_privilege_change(&privilege("REPORTS"), &change(r#"{"key":"X"}"#)).is_ok());
        assert!(check_privilege_deletion(&privilege("USER_READ"), &[]).is_err());
        assert!(check_privilege_deletion(&privilege("REPORTS"), &["A".into()]).is_err());
        assert!(check_privilege_deletion(&privilege("REPORTS"), &[]).is_ok());
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name_and_null_clears_the_description() {
        assert_eq!(change("{}").applied_to(role("A", true)), role("A", true));
        let changed = change(r#"{"description":null,"name":" New "}"#).applied_to(role("A", false));
        assert_eq!((changed.name.as_str(), changed.description.as_str(), changed.key.as_str()), ("New", "", "A"));
        for refused in [r#"{"name":null}"#, r#"{"key":null}"#, r#"{"privileges":null}"#, r#"{"privileges":[]}"#] {
            assert!(web::from_json::<RoleChange>(refused.as_bytes()).is_err(), "{refused}");
        }
    }

    #[test]
    fn privileges_are_not_named_like_scopes() {
        let read = |key: &str| web::from_json::<NewPrivilege>(format!(r#"{{"key":"{key}"}}"#).as_bytes());
        assert!(read("reports:read").is_ok());
        assert!(read("openid").is_err());
        assert!(read("two words").is_err());
    }
}
