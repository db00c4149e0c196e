//! Who makes a token. What a token makes expires no later than it does and is signed by the same secret, so that both
//! end with that, too; what a member makes needs them to be there still.

use ::store::{Tx, row, text_enum};
use kernel::{AppId, Code, Error, KeyId, MemberId, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use vault::Keyring;

use super::{
    ApiTokenId,
    secrets::{self, AppSecret},
    store, unknown,
};
use crate::{
    Authority,
    callers::{KeyCredential, KeyHolder, SignedIn},
};

/// A caller that asks for a token.
#[derive(Clone, Debug)]
pub struct Maker {
    pub(super) authority: Authority,
    /// `None` for a member who is signed in.
    credential: Option<KeyHolder>,
    /// In whose name it is made: the id of a member, or the person's.
    member: Option<String>,
}

impl Maker {
    pub(crate) fn key(credential: &KeyCredential) -> Self {
        Self { authority: Authority::of_key(credential), credential: Some(credential.holder), member: None }
    }

    /// The same, in the name of somebody who runs the workspace.
    pub(crate) fn in_name_of(self, member: &str) -> Self {
        Self { member: Some(member.to_owned()), ..self }
    }

    pub(crate) fn user(user: &SignedIn) -> Self {
        Self { authority: Authority::of_user(user), credential: None, member: Some(user.member().to_string()) }
    }

    /// What a new token inherits. Asked under the lock of `workspace`, where the member belongs; the token that makes
    /// another one cannot be revoked until this transaction ends.
    pub(super) fn still_there(
        &self,
        tx: &mut Tx<'_>,
        keyring: &Keyring,
        app: AppId,
        workspace: Option<TenantId>,
    ) -> Result<Origin> {
        let mut made_by = MadeBy::default();
        if let (Some(name), Some(workspace)) = (&self.member, workspace) {
            made_by.member = Some(owner_or_admin(tx, app, workspace, name)?);
        }
        match self.credential {
            Some(KeyHolder::ApiToken(id)) => {
                let parent = store::hold(tx, app, id)?.ok_or_else(unknown)?;
                made_by.token = Some(id);
                let secret = secrets::get(tx, keyring, app, parent.secret)?.ok_or_else(unknown)?;
                return Ok(Origin { made_by, expire_at: parent.expire_at, secret });
            }
            Some(KeyHolder::AppKey(id)) => made_by.key = Some(id),
            None => {}
        }
        Ok(Origin { made_by, expire_at: None, secret: secrets::newest(tx, keyring, app)? })
    }
}

fn owner_or_admin(tx: &mut Tx<'_>, app: AppId, workspace: TenantId, name: &str) -> Result<MemberId> {
    match store::role_of(tx, app, workspace, name)? {
        Some((member, role)) if matches!(role.as_str(), "OWNER" | "ADMIN") => Ok(member),
        _ => {
            let message = "Tokens of a workspace are made in the name of an enabled OWNER or ADMIN: tenantUserId must \
                           name one of this workspace.";
            Err(Error::new(Code::Forbidden, message))
        }
    }
}

/// What a new token comes from.
pub(super) struct Origin {
    pub(super) made_by: MadeBy,
    /// When the token that makes it expires.
    pub(super) expire_at: Option<Timestamp>,
    pub(super) secret: AppSecret,
}

/// The token that makes another one.
pub(super) struct Parent {
    pub(super) expire_at: Option<Timestamp>,
    secret: super::SecretId,
}

row! { Parent = "api_tokens" { expire_at, secret: "secret_id" } }

/// Who made a token, as it is stored: a key may act in a member's name, and so may a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeBy {
    pub(super) key: Option<KeyId>,
    pub(super) token: Option<ApiTokenId>,
    pub(super) member: Option<MemberId>,
}

row! { MadeBy = "api_tokens" { key: "made_by_key", token: "made_by_token", member: "made_by_member" } }

impl MadeBy {
    /// The token before the member in whose name it acted, the member before the key that acted for them.
    fn told(&self) -> Option<CreatedBy> {
        let token = self.token.map(CreatedBy::token);
        let member = self.member.map(|id| CreatedBy { kind: MakerKind::Member, id: id.to_string() });
        let key = self.key.map(CreatedBy::key);
        token.or(member).or(key)
    }
}

/// As `createdBy` on the wire.
impl Serialize for MadeBy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.told().serialize(serializer)
    }
}

text_enum! {
    wire pub enum MakerKind {
        AppKey = "app_key",
        ApiToken = "api_token",
        Member = "member",
    }
}

/// Who made a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CreatedBy {
    #[serde(rename = "type")]
    pub kind: MakerKind,
    /// The id of the key, the token or the membership.
    pub id: String,
}

impl CreatedBy {
    pub(crate) fn token(id: ApiTokenId) -> Self {
        Self { kind: MakerKind::ApiToken, id: id.to_string() }
    }

    pub(crate) fn key(id: KeyId) -> Self {
        Self { kind: MakerKind::AppKey, id: id.to_string() }
    }
}
