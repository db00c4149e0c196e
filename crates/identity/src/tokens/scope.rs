//! What a token may tell and do. OIDC names select what is told about the person, privilege keys cut what the role
//! grants; whichever of the two is not asked for stays whole. Pure.

use std::{collections::HashSet, ops::Deref};

use kernel::{Code, Error, Result};
use store::{Arg, Column, ToArg, Value, WrongType, row};
use tenancy::callers::AccessClaims;
pub use tenancy::roles::OIDC_SCOPES;

/// What is granted when nothing is asked for.
pub const DEFAULT_SCOPE: &str = "openid profile email onboarding tenant";

/// Words of a scope, which tokens and rows keep as one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeWords(Vec<String>);

impl ScopeWords {
    pub fn read(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_owned).collect())
    }
}

impl Deref for ScopeWords {
    type Target = Vec<String>;

    fn deref(&self) -> &Vec<String> {
        &self.0
    }
}

impl Column for ScopeWords {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        String::from_value(value).map(|text| Self::read(&text))
    }
}

impl ToArg for ScopeWords {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Text(self.join(" ").into())
    }
}

/// What one grant covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    pub oidc: ScopeWords,
    /// `None`: whatever the role grants at the time.
    pub privileges: Option<ScopeWords>,
}

// Several tables keep a grant, in columns of the same names.
row! { Granted = "" { oidc = "oidc_scope", privileges = "privileges" } }

/// A scope as somebody asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeRequest {
    oidc: Vec<String>,
    /// Whatever is not an OIDC name: privileges, or mistakes.
    pub privileges: Vec<String>,
}

impl ScopeRequest {
    /// An empty scope asks for nothing in particular.
    pub fn parse(text: &str) -> Self {
        let (mut asked, mut seen) = (Self::default(), HashSet::new());
        for word in text.split_whitespace().filter(|word| seen.insert(*word)) {
            let list = if OIDC_SCOPES.contains(&word) { &mut asked.oidc } else { &mut asked.privileges };
            list.push(word.to_owned());
        }
        asked
    }

    pub fn or_default(text: Option<&str>) -> Self {
        let asked = Self::parse(text.unwrap_or_default());
        if asked == Self::default() { Self::parse(DEFAULT_SCOPE) } else { asked }
    }

    /// An error that names the first word that is neither an OIDC name nor a privilege of the app.
    pub fn check(&self, is_defined: impl Fn(&str) -> bool) -> Result<()> {
        match self.privileges.iter().find(|word| !is_defined(word)) {
            None => Ok(()),
            Some(unknown) => {
                let shown: String = unknown.chars().take(64).collect();
                Err(Error::new(Code::InvalidScope, format!("This app has no scope or privilege {shown:?}.")))
            }
        }
    }
}

impl Granted {
    pub fn everything() -> Self {
        Self { oidc: ScopeWords(OIDC_SCOPES.map(str::to_owned).to_vec()), privileges: None }
    }

    /// What an access token was granted.
    pub fn of(claims: &AccessClaims) -> Self {
        Self::read(&claims.oidc_scope, claims.scope_narrowed.then_some(claims.scope.as_str()))
    }

    /// From the texts that tokens keep.
    pub fn read(oidc: &str, privileges: Option<&str>) -> Self {
        Self { oidc: ScopeWords::read(oidc), privileges: privileges.map(ScopeWords::read) }
    }

    /// Never more than before.
    #[must_use]
    pub fn narrowed(&self, asked: &ScopeRequest) -> Self {
        let oidc = if asked.oidc.is_empty() { self.oidc.clone() } else { ScopeWords(both(&self.oidc, &asked.oidc)) };
        let privileges = match (&self.privileges, asked.privileges.is_empty()) {
            (kept, true) => kept.clone(),
            (None, false) => Some(ScopeWords(asked.privileges.clone())),
            (Some(held), false) => Some(ScopeWords(both(held, &asked.privileges))),
        };
        Self { oidc, privileges }
    }

    /// The privileges of a token, given what the role grants now.
    pub fn of_role(&self, role: &[String]) -> Vec<String> {
        match &self.privileges {
            None => role.to_vec(),
            Some(held) => both(role, held),
        }
    }

    pub fn has(&self, oidc: &str) -> bool {
        self.oidc.iter().any(|held| held == oidc)
    }

    pub fn oidc_text(&self) -> String {
        self.oidc.join(" ")
    }

    pub fn privileges_text(&self) -> Option<String> {
        self.privileges.as_ref().map(|held| held.join(" "))
    }
}

/// What stands in both, in the order of the first.
fn both(one: &[String], other: &[String]) -> Vec<String> {
    one.iter().filter(|word| other.contains(word)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_half_is_cut_only_when_it_is_asked_for() {
        let all = Granted::everything();
        let oidc = all.narrowed(&ScopeRequest::parse("openid email"));
        assert_eq!((oidc.oidc_text().as_str(), oidc.privileges_text()), ("openid email", None));
        let privileges = all.narrowed(&ScopeRequest::parse("TENANT_READ USER_READ"));
        assert_eq!(privileges.oidc, all.oidc);
        assert_eq!(privileges.privileges_text().as_deref(), Some("TENANT_READ USER_READ"));
        assert_eq!(privileges.of_role(&["USER_READ".into(), "USER_WRITE".into()]), ["USER_READ"]);
    }

    #[test]
    fn narrowing_again_never_widens() {
        let narrow = Granted::read("openid", Some("USER_READ"));
        assert_eq!(narrow.narrowed(&ScopeRequest::parse("openid email tenant USER_READ USER_WRITE")), narrow);
        assert_eq!(narrow.narrowed(&ScopeRequest::parse("email")).oidc_text(), "");
        assert_eq!(narrow.narrowed(&ScopeRequest::parse("")), narrow);
    }

    #[test]
    fn an_unknown_word_is_named() {
        let asked = ScopeRequest::parse("openid FLY");
        let error = asked.check(|word| word == "USER_READ").expect_err("unknown");
        assert_eq!(error.code(), Code::InvalidScope);
        assert!(error.public().contains("FLY"));
        ScopeRequest::parse("openid USER_READ").check(|word| word == "USER_READ").expect("known");
        assert_eq!(ScopeRequest::or_default(Some(" ")), ScopeRequest::parse(DEFAULT_SCOPE));
    }
}
