//! Callers: extractors whose type is the permission. A handler that takes `AppCaller<AppWrite>` cannot be reached
//! without it, and the documentation and the authorization test read it off the same type.
//!
//! | in the contract | extractor |
//! |---|---|
//! | OPERATOR | [`Operator`] |
//! | KEY, for the whole app | [`AppCaller`] |
//! | KEY, for a workspace named in the path | [`KeyCaller`], then [`KeyCaller::in_workspace`] |
//! | KEY+T | [`TenantCaller`] |
//! | KEY or a signed-in user | [`KeyOrUser`] |
//! | USER | [`UserCaller`] |
//! | BEARER | [`BearerCaller`] |
//! | USER or KEY+T | [`UserOrKey`] |
//! | SCIM | [`ScimCaller`] |

mod access_tokens;
mod credential;
mod key;
mod key_or_user;
mod operator;
pub mod privileges;
mod scim;
mod tenant;
mod user;
mod user_or_key;

pub use access_tokens::{ACCESS_TOKEN, AccessClaims, AccessTokens, GRACE};
pub use credential::{KeyCredential, KeyHolder};
pub use key::{AppCaller, KeyCaller};
pub use key_or_user::KeyOrUser;
pub use operator::Operator;
pub use privileges::{
    AnyKey, AnyMember, AppDelete, AppRead, AppWrite, EventRead, EventWrite, OwnerOrAdmin, Permission, Privilege,
    TenantDelete, TenantRead, TenantWrite, TokenMaker, UserRead, UserWrite,
};
pub use scim::ScimCaller;
pub use tenant::TenantCaller;
pub use user::{BearerCaller, DescribedCaller, RefreshingCaller, SignedIn, UserCaller, admit, authenticate_token};
pub use user_or_key::UserOrKey;
