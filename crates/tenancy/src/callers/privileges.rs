//! The built-in privileges, each also a type that callers are asked for by.

use kernel::{Code, Error, Result};

use super::SignedIn;

/// A privilege that every app has from the start.
pub struct BuiltIn {
    pub key: &'static str,
    pub description: &'static str,
}

pub const BUILT_IN: &[BuiltIn] = &[
    BuiltIn { key: "AUTHENTICATED", description: "Is signed in" },
    BuiltIn { key: "USER_READ", description: "See the members of a workspace" },
    BuiltIn { key: "USER_WRITE", description: "Invite, change and remove members of a workspace" },
    BuiltIn { key: "TENANT_READ", description: "See workspaces and their billing" },
    BuiltIn { key: "TENANT_WRITE", description: "Create and change workspaces and their billing" },
    BuiltIn { key: "TENANT_DELETE", description: "Delete workspaces" },
    BuiltIn { key: "APP_READ", description: "See the app's settings, catalog and roles" },
    BuiltIn { key: "APP_WRITE", description: "Change the app's settings, catalog and roles" },
    BuiltIn { key: "APP_DELETE", description: "Delete what the whole app depends on, and the app itself" },
];

/// Never granted by default: whoever wants these names them.
pub fn is_destructive(key: &str) -> bool {
    matches!(key, "TENANT_DELETE" | "APP_DELETE")
}

/// A privilege as a type, for the callers that ask for it.
pub trait Privilege: Send + Sync + 'static {
    /// `None` asks for nothing beyond a valid credential.
    const KEY: Option<&'static str>;

    /// Whether somebody who holds these has it.
    fn is_among(held: &[String]) -> bool {
        Self::KEY.is_none_or(|wanted| held.iter().any(|key| key == wanted))
    }
}

macro_rules! privileges {
    ($($name:ident = $key:literal;)*) => { $(
        #[doc = concat!("`", $key, "`")]
        pub enum $name {}
        impl Privilege for $name {
            const KEY: Option<&'static str> = Some($key);
        }
    )* };
}

privileges! {
    UserRead = "USER_READ";
    UserWrite = "USER_WRITE";
    TenantRead = "TENANT_READ";
    TenantWrite = "TENANT_WRITE";
    TenantDelete = "TENANT_DELETE";
    AppRead = "APP_READ";
    AppWrite = "APP_WRITE";
    AppDelete = "APP_DELETE";
}

macro_rules! either {
    ($($name:ident = $one:literal or $other:literal;)*) => { $(
        #[doc = concat!("`", $one, "` or `", $other, "`")]
        pub enum $name {}
        impl Privilege for $name {
            const KEY: Option<&'static str> = Some(concat!($one, " or ", $other));

            fn is_among(held: &[String]) -> bool {
                held.iter().any(|key| key == $one || key == $other)
            }
        }
    )* };
}

either! {
    EventRead = "APP_READ" or "TENANT_READ";
    EventWrite = "APP_WRITE" or "TENANT_WRITE";
}

/// Any valid key, whatever it may do.
pub enum AnyKey {}

impl Privilege for AnyKey {
    const KEY: Option<&'static str> = None;
}

/// What is asked of a signed-in user, as a type: a privilege, or a place in the workspace.
pub trait Permission: Send + Sync + 'static {
    /// As the documentation names it; `None` asks for nothing beyond being a member.
    const NAME: Option<&'static str>;

    /// 403 without it.
    fn check(user: &SignedIn) -> Result<()>;
}

impl<P: Privilege> Permission for P {
    const NAME: Option<&'static str> = P::KEY;

    fn check(user: &SignedIn) -> Result<()> {
        require::<P>(&user.privileges)
    }
}

/// Every member of the workspace.
pub enum AnyMember {}

impl Permission for AnyMember {
    const NAME: Option<&'static str> = None;

    fn check(_: &SignedIn) -> Result<()> {
        Ok(())
    }
}

/// OWNERs and ADMINs of the workspace.
pub enum OwnerOrAdmin {}

impl Permission for OwnerOrAdmin {
    const NAME: Option<&'static str> = Some("OWNER or ADMIN");

    fn check(user: &SignedIn) -> Result<()> {
        TokenMaker::check(user)?;
        // What the role may do beyond its privileges goes with the strongest of them: a token that was narrowed to less
        // has none of it.
        match TenantWrite::is_among(&user.membership.privileges) {
            true => require::<TenantWrite>(&user.privileges),
            false => Ok(()),
        }
    }
}

/// The same, whatever their token was narrowed to: for making tokens, which do no more than it does.
pub enum TokenMaker {}

impl Permission for TokenMaker {
    const NAME: Option<&'static str> = OwnerOrAdmin::NAME;

    fn check(user: &SignedIn) -> Result<()> {
        match user.membership.role.as_str() {
            "OWNER" | "ADMIN" => Ok(()),
            _ => Err(Error::new(Code::Forbidden, "Only an OWNER or ADMIN of the workspace may do this.")),
        }
    }
}

/// 403 unless `held` has the privilege `P`.
pub(crate) fn require<P: Privilege>(held: &[String]) -> Result<()> {
    match P::KEY {
        Some(wanted) if !P::is_among(held) => {
            Err(Error::new(Code::MissingPrivilege, format!("This operation requires the privilege {wanted}.")))
        }
        _ => Ok(()),
    }
}
