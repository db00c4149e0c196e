//! `/account/me`: who one is.

use kernel::{MemberId, OptionalName, Phone, Result, TenantId, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Tx;
use tenancy::{
    apps::parameters::Parameters,
    callers::{AnyMember, BearerCaller, SignedIn},
    members::{self, MemberChanges},
    people,
};
use web::{Json, Patch, Routes, State, Valid, Validate};

use super::{ELSEWHERE, TAG};
use crate::{
    Identity,
    login::{credentials, own},
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::new(TAG)
        .get("/account/me", get, "Get your own profile")
        .put("/account/me", put, "Change your own profile")
        .description("Names and phone number are the same in all of your workspaces; parameters are this one's.")
        .answers(403, ELSEWHERE)
}

/// A person and what they are in the workspace that their token is for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OwnProfile")]
pub struct Profile {
    pub user_id: UserId,
    pub email: String,
    pub email_verified: bool,
    pub first_name: String,
    pub last_name: String,
    pub full_name: String,
    pub phone_number: Option<String>,
    /// Missing after a login through a workspace's identity provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_password: Option<bool>,
    pub tenant_user_id: MemberId,
    pub workspace_id: TenantId,
    /// The role's key.
    pub role: String,
    pub parameters: Parameters,
}

impl Profile {
    pub fn read(tx: &mut Tx<'_>, user: &SignedIn) -> Result<Self> {
        let (app, id) = (user.app(), user.user());
        let member = members::get(tx, app, user.tenant(), members::MemberRef::User(id))?;
        // Whoever belongs here on an identity provider's word alone is known by their address, to that provider too.
        let is_bounded = !own::login(tx, user)?.reach.is_everything();
        let (first_name, last_name, phone_number) = match user.membership.vouched && is_bounded {
            true => (String::new(), String::new(), None),
            false => (member.first_name, member.last_name, member.phone_number),
        };
        let account = credentials::find(tx, app, &member.email)?;
        let has_password = (!is_bounded).then(|| account.is_some_and(|account| account.has_password()));
        Ok(Self {
            user_id: id,
            email: member.email,
            email_verified: !is_bounded && people::has_proven_address(tx, app, id)?,
            full_name: people::full_name(&first_name, &last_name),
            first_name,
            last_name,
            phone_number,
            has_password,
            tenant_user_id: member.id,
            workspace_id: member.tenant_id,
            role: member.role,
            parameters: member.parameters,
        })
    }
}

async fn get(caller: BearerCaller<AnyMember>, State(identity): State<Identity>) -> Result<Json<Profile>> {
    Ok(Json(identity.tenancy.db.read(move |tx| Profile::read(tx, &caller.0)).await?))
}

/// The body of `PUT /account/me`: what is missing stays as it is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct OwnChanges {
    first_name: Patch<OptionalName>,
    last_name: Patch<OptionalName>,
    /// In international form such as `+4930123456`.
    phone_number: Patch<Phone>,
    /// Replaced whole; only those that the app lets people edit themselves may differ.
    parameters: Patch<Parameters>,
}

impl Validate for OwnChanges {}

impl OwnChanges {
    fn of_member(self) -> MemberChanges {
        let Self { first_name, last_name, phone_number, parameters } = self;
        MemberChanges { first_name, last_name, phone_number, parameters, ..MemberChanges::default() }
    }
}

async fn put(
    caller: BearerCaller<AnyMember>,
    State(identity): State<Identity>,
    Valid(body): Valid<OwnChanges>,
) -> Result<Json<Profile>> {
    let changes = body.of_member();
    let changed = identity.tenancy.db.by(&caller.0).write(move |tx| {
        let user = &caller.0;
        if changes.name_the_person() {
            own::homely_login(tx, user)?;
        }
        members::update_self(tx, user.app(), user.tenant(), user.user(), &changes)?;
        Profile::read(tx, user)
    });
    Ok(Json(changed.await?))
}
