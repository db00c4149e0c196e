//! One-time links: values mailed to people that work once and for a while. Only their digests are stored.

use std::time::Duration;

use kernel::{AppId, Error, MemberId, Result, TenantId, Timestamp, UserId, email_key, id_kinds};
use serde_json::Value;
use store::{Json, Tx, args, row, sql, text_enum};
use vault::hash_token;

id_kinds! {
    /// A one-time link's row; public, unlike its token.
    LinkId(Link) = "link";
}

text_enum! {
    /// What a link is for. A link of one purpose is nothing to another.
    #[derive(Hash)]
    pub enum LinkPurpose {
        Invitation = "invitation",
        SignUp = "sign_up",
        PasswordReset = "password_reset",
        PasskeySetup = "passkey_setup",
        MagicLink = "magic_link",
        SenderVerification = "sender_verification",
        AddressChange = "address_change",
    }
}

impl LinkPurpose {
    pub const fn lifetime(self) -> Duration {
        const HOUR: u64 = 3600;
        match self {
            Self::Invitation => Duration::from_secs(7 * 24 * HOUR),
            Self::SignUp | Self::SenderVerification | Self::AddressChange => Duration::from_secs(24 * HOUR),
            Self::PasswordReset | Self::PasskeySetup => Duration::from_secs(HOUR),
            Self::MagicLink => Duration::from_secs(15 * 60),
        }
    }
}

/// What a link stands for.
#[derive(Clone, Debug)]
pub struct MailedLink {
    pub app: AppId,
    pub user: Option<UserId>,
    pub payload: Value,
    pub expires_at: Timestamp,
}

row! { MailedLink = "one_time_links" { app: "app_id", user: "user_id", payload as Json, expires_at } }

/// 43 characters of base62 hold 256 bits.
const TOKEN_LENGTH: usize = 43;

/// Makes a link's token, which is in the answer and nowhere else.
pub fn create(
    tx: &mut Tx<'_>,
    app: AppId,
    purpose: LinkPurpose,
    user: Option<UserId>,
    payload: &Value,
) -> Result<String> {
    insert(tx, app, purpose, user, None, payload)
}

/// An address as it stands in tables that need not tell it.
pub(crate) fn recipient(app: AppId, address: &str) -> String {
    hash_token(&format!("{app}:{}", email_key(address.trim())))
}

/// The same for an address that belongs to nobody yet. The newest few stay and those before them are deleted, so that
/// strangers cannot fill the store by asking again and again. Whoever calls this holds the address: it has counted the mail.
pub fn create_for_address(
    tx: &mut Tx<'_>,
    app: AppId,
    purpose: LinkPurpose,
    address: &str,
    payload: &Value,
) -> Result<String> {
    let recipient = recipient(app, address);
    tx.run(
        "DELETE FROM one_time_links WHERE app_id = $1 AND recipient = $2 AND purpose = $3 AND id NOT IN \
         (SELECT id FROM one_time_links WHERE app_id = $1 AND recipient = $2 AND purpose = $3 \
         ORDER BY created_at DESC, id DESC LIMIT $4)",
        &args![app, recipient, purpose, WORKING - 1],
    )?;
    insert(tx, app, purpose, None, Some(&recipient), payload)
}

fn insert(
    tx: &mut Tx<'_>,
    app: AppId,
    purpose: LinkPurpose,
    user: Option<UserId>,
    recipient: Option<&str>,
    payload: &Value,
) -> Result<String> {
    let token = tx.entropy().base62(TOKEN_LENGTH);
    let (id, now): (LinkId, _) = (tx.new_id(), tx.now());
    let expires_at = now.plus(purpose.lifetime());
    tx.exec(
        "INSERT INTO one_time_links (id, app_id, purpose, digest, user_id, recipient, payload, expires_at, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &args![id, app, purpose, hash_token(&token), user, recipient, Json(payload), expires_at, now],
    )?;
    Ok(token)
}

/// Looks without using it up: for the page that a GET of the link shows.
pub fn peek(tx: &mut Tx<'_>, purpose: LinkPurpose, token: &str) -> Result<MailedLink> {
    tx.opt(
        sql!(
            "SELECT ",
            MailedLink::COLUMNS,
            " FROM one_time_links WHERE digest = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3"
        ),
        &args![hash_token(token), purpose, tx.now()],
    )?
    .ok_or_else(invalid)
}

/// A link as it was made, whether it is still valid or not: for the page that says that it no longer works.
pub fn trace(tx: &mut Tx<'_>, purpose: LinkPurpose, token: &str) -> Result<Option<MailedLink>> {
    tx.opt(
        sql!("SELECT ", MailedLink::COLUMNS, " FROM one_time_links WHERE digest = $1 AND purpose = $2"),
        &args![hash_token(token), purpose],
    )
}

/// Uses the link up; of several callers at once exactly one succeeds.
pub fn consume(tx: &mut Tx<'_>, purpose: LinkPurpose, token: &str) -> Result<MailedLink> {
    tx.opt(
        sql!(
            "UPDATE one_time_links SET used_at = $3 \
             WHERE digest = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3 RETURNING ",
            MailedLink::COLUMNS
        ),
        &args![hash_token(token), purpose, tx.now()],
    )?
    .ok_or_else(invalid)
}

/// How many links of one purpose work at a time: asking for one does not void what somebody else is about to follow.
const WORKING: i64 = 3;

/// Ends all but the newest links of this purpose, so that there is room for one more.
pub fn keep_newest(tx: &mut Tx<'_>, app: AppId, purpose: LinkPurpose, user: UserId) -> Result<()> {
    tx.run(
        "UPDATE one_time_links SET used_at = $4 WHERE app_id = $1 AND purpose = $2 AND user_id = $3 AND used_at IS NULL \
         AND id NOT IN (SELECT id FROM one_time_links WHERE app_id = $1 AND purpose = $2 AND user_id = $3 \
         AND used_at IS NULL AND expires_at > $4 ORDER BY created_at DESC, id DESC LIMIT $5)",
        &args![app, purpose, user, tx.now(), WORKING - 1],
    )
}

/// Ends every unused link of this purpose that was made for the person.
pub fn revoke(tx: &mut Tx<'_>, app: AppId, purpose: LinkPurpose, user: UserId) -> Result<()> {
    tx.run(
        "UPDATE one_time_links SET used_at = $4 WHERE app_id = $1 AND purpose = $2 AND user_id = $3 AND used_at IS NULL",
        &args![app, purpose, user, tx.now()],
    )
}

/// Ends every unused invitation to a workspace; call it while its memberships still exist.
pub fn revoke_invitations(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<()> {
    tx.run(
        "UPDATE one_time_links SET used_at = $5 WHERE app_id = $1 AND purpose = $3 AND payload LIKE $4 \
         AND used_at IS NULL AND user_id IN (SELECT user_id FROM members WHERE tenant_id = $2)",
        &args![app, tenant, LinkPurpose::Invitation, format!("%\"{tenant}\"%"), tx.now()],
    )
}

/// Ends the unused invitations of a person to one membership.
pub fn revoke_invitations_of(tx: &mut Tx<'_>, app: AppId, user: UserId, member: MemberId) -> Result<()> {
    tx.run(
        "UPDATE one_time_links SET used_at = $5 WHERE app_id = $1 AND user_id = $2 AND purpose = $3 AND payload LIKE $4 \
         AND used_at IS NULL",
        &args![app, user, LinkPurpose::Invitation, format!("%\"{member}\"%"), tx.now()],
    )
}

pub(crate) fn invalid() -> Error {
    Error::credential("This link is no longer valid: it has expired, has already been used, or has been replaced.")
}
