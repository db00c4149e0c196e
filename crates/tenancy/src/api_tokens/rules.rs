//! What may go into a new token, and who may put it there.

use kernel::{Code, Error, Key, Name, Problems, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use web::Validate;

use crate::Authority;

/// What a new token is asked to be.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewApiToken {
    pub name: Name,
    /// Keys of privileges that the app defines. Destructive ones are granted by naming them.
    #[schemars(length(min = 1), extend("examples" = [["APP_READ"]]))]
    pub privileges: Vec<Key>,
    /// Left out or `null`: the token does not expire.
    #[serde(default)]
    pub expire_at: Option<Timestamp>,
}

impl Validate for NewApiToken {
    fn validate(&self, problems: &mut Problems) {
        let length: usize = self.privileges.iter().map(|key| key.len() + 3).sum();
        problems.check("privileges", length <= MOST_TEXT, "must not be longer than 8 KiB altogether");
    }
}

/// The token carries them in every request.
const MOST_TEXT: usize = 8 * 1024;

/// What the granting of privileges is measured by.
pub(super) struct Measure<'a> {
    /// The keys that the app defines.
    pub(super) defined: &'a [&'a str],
    /// What tokens of this app may hold; `None` for anything.
    pub(super) allowed: Option<&'a [String]>,
    /// What the granting caller holds.
    pub(super) authority: &'a Authority,
    pub(super) now: Timestamp,
}

impl Measure<'_> {
    /// The privileges of the new token, each once.
    pub(super) fn granted(&self, new: &NewApiToken) -> Result<Vec<String>> {
        let mut problems = Problems::new();
        for (index, key) in new.privileges.iter().enumerate() {
            if !self.defined.contains(&key.as_str()) {
                problems
                    .add(format!("privileges[{index}]"), format!("{:?} is not a privilege of this app", key.as_str()));
            }
        }
        problems.check("expireAt", new.expire_at.is_none_or(|at| at > self.now), "must be in the future");
        problems.finish()?;
        self.authority.may_grant(new.privileges.iter().map(|key| key.as_str()))?;
        if let Some(key) = new.privileges.iter().find(|key| !self.allows(key)) {
            let message = format!("API tokens of this app cannot have {key}: it is not in allowedTokenPrivileges.");
            return Err(Error::new(Code::PrivilegeNotAllowed, message));
        }
        let mut granted: Vec<String> = Vec::with_capacity(new.privileges.len());
        for key in &new.privileges {
            if !granted.iter().any(|known| *known == **key) {
                granted.push(key.to_string());
            }
        }
        Ok(granted)
    }

    pub(super) fn holds(&self, key: &str) -> bool {
        self.authority.held().has(key)
    }

    pub(super) fn allows(&self, key: &str) -> bool {
        self.allowed.is_none_or(|allowed| allowed.iter().any(|one| one == key))
    }
}

/// What a token makes expires no later than it does.
pub(crate) fn earlier(asked: Option<Timestamp>, bound: Option<Timestamp>) -> Option<Timestamp> {
    match (asked, bound) {
        (Some(asked), Some(bound)) => Some(asked.min(bound)),
        (asked, bound) => asked.or(bound),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);
    const DEFINED: &[&str] = &["APP_READ", "APP_WRITE", "TENANT_READ", "TENANT_DELETE", "EXPORT"];

    fn new(privileges: &[&str], expire_at: Option<Timestamp>) -> NewApiToken {
        let privileges = privileges.iter().map(|key| key.parse().expect("a key")).collect();
        NewApiToken { name: "CI".parse().expect("a name"), privileges, expire_at }
    }

    fn measure<'a>(authority: &'a Authority, allowed: Option<&'a [String]>) -> Measure<'a> {
        Measure { defined: DEFINED, allowed, authority, now: NOW }
    }

    fn holding(held: Option<&[String]>) -> Authority {
        held.map_or_else(Authority::unlimited, Authority::holding)
    }

    #[test]
    fn what_is_wrong_is_told_all_at_once() {
        let key = Authority::unlimited();
        let error = measure(&key, None).granted(&new(&["APP_READ", "NOPE", "NO"], Some(NOW))).unwrap_err();
        let fields: Vec<&str> = error.details().iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["privileges[1]", "privileges[2]", "expireAt"]);
    }

    #[test]
    fn an_app_key_grants_anything_and_others_what_they_hold() {
        let later = Some(NOW.plus(Duration::from_secs(1)));
        let wanted = new(&["TENANT_DELETE", "APP_READ", "TENANT_DELETE"], later);
        let (key, held) = (Authority::unlimited(), ["APP_READ".to_owned()]);
        assert_eq!(measure(&key, None).granted(&wanted).unwrap(), ["TENANT_DELETE", "APP_READ"]);
        let refused = |authority, allowed| measure(authority, allowed).granted(&wanted).unwrap_err().code();
        let holder = Authority::holding(&held);
        assert_eq!(refused(&holder, None), Code::MissingPrivilege);
        assert_eq!(refused(&key, Some(&held)), Code::PrivilegeNotAllowed);
    }

    #[test]
    fn the_earlier_end_counts() {
        let later = NOW.plus(Duration::from_secs(1));
        assert_eq!(earlier(Some(later), Some(NOW)), Some(NOW));
        assert_eq!(earlier(Some(NOW), Some(later)), Some(NOW));
        assert_eq!(earlier(None, Some(NOW)), Some(NOW));
        assert_eq!((earlier(Some(NOW), None), earlier(None, None)), (Some(NOW), None));
    }

    fn keys() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(prop::sample::select(vec!["APP_READ", "EXPORT", "TENANT_READ", "NOPE"]), 1..5)
            .prop_map(|keys| keys.into_iter().map(str::to_owned).collect())
    }

    proptest! {
        #[test]
        fn what_is_granted_is_asked_for_defined_held_and_allowed(
            asked in keys(), held in prop::option::of(keys()), allowed in prop::option::of(keys()),
        ) {
            let authority = holding(held.as_deref());
            let measure = measure(&authority, allowed.as_deref());
            let asked = new(&asked.iter().map(String::as_str).collect::<Vec<_>>(), None);
            let within = |key: &str| DEFINED.contains(&key) && measure.holds(key) && measure.allows(key);
            match measure.granted(&asked) {
                Ok(granted) => {
                    let asked_for = |key: &str| asked.privileges.iter().any(|asked| **asked == *key);
                    prop_assert!(granted.iter().all(|key| asked_for(key) && within(key)));
                }
                Err(_) => prop_assert!(!asked.privileges.iter().all(|key| within(key))),
            }
        }
    }
}
