//! What a new member and a change of one must look like. Pure.

use kernel::{Email, Name, OptionalName, Phone, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Given, Patch, Validate};

use super::Member;
use crate::{
    apps::parameters::Parameters,
    roles::{self, Role},
};

/// The body of `POST /account/tenant/user`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewMember {
    /// The person's email address.
    pub username: Email,
    /// A role's key; the app's default role without it.
    pub role: Option<Words>,
    pub first_name: Option<OptionalName>,
    pub last_name: Option<OptionalName>,
    /// Whether no invitation is mailed.
    pub mute_notifications: Option<bool>,
    /// What the app keeps about the member.
    pub parameters: Option<Parameters>,
}

impl Validate for NewMember {}

/// The body of `PUT /account/tenant/user/{user_id}`: what is missing stays as it is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberChanges {
    /// A role's key.
    pub role: Given<Words>,
    pub enabled: Given<bool>,
    pub teams: Patch<Vec<Name>>,
    /// Of the person, in all their workspaces.
    pub first_name: Patch<OptionalName>,
    /// Of the person, in all their workspaces.
    pub last_name: Patch<OptionalName>,
    pub onboarded: Given<bool>,
    pub consents_to_privacy_policy: Given<bool>,
    /// Of the person, in all their workspaces; in international form such as `+4930123456`.
    pub phone_number: Patch<Phone>,
    /// Replaced whole; `null` empties them.
    pub parameters: Patch<Parameters>,
}

impl Validate for MemberChanges {}

impl MemberChanges {
    /// Whether they say anything about the person, who is the same in all workspaces.
    pub fn name_the_person(&self) -> bool {
        let names = [&self.first_name, &self.last_name];
        names.iter().any(|name| !matches!(name, Patch::Missing)) || !matches!(self.phone_number, Patch::Missing)
    }

    /// `role` is what the changes' role key stands for.
    pub(super) fn apply<U: Clone>(&self, before: &Member<U>, role: Option<&Role>) -> Member<U> {
        let name = |change: &Patch<OptionalName>, before: &str| {
            change.clone().apply(Some(before.to_owned())).unwrap_or_default()
        };
        let teams = self.teams.map(|teams| teams.iter().map(Name::to_string).collect::<Vec<_>>());
        Member {
            role: role.map_or_else(|| before.role.clone(), |role| role.key.clone()),
            role_id: role.map_or(before.role_id, |role| role.id),
            enabled: self.enabled.or(before.enabled),
            teams: teams.apply(Some(before.teams.clone())).unwrap_or_default(),
            first_name: name(&self.first_name, &before.first_name),
            last_name: name(&self.last_name, &before.last_name),
            onboarded: self.onboarded.or(before.onboarded),
            consents_to_privacy_policy: self.consents_to_privacy_policy.or(before.consents_to_privacy_policy),
            phone_number: self.phone_number.clone().apply(before.phone_number.clone()),
            parameters: self.parameters.clone().apply(Some(before.parameters.clone())).unwrap_or_default(),
            ..before.clone()
        }
    }
}

/// Whether a change goes beyond the workspace: names and phone number are the person's.
pub(super) fn is_another_person(before: &Member, after: &Member) -> bool {
    before.first_name != after.first_name
        || before.last_name != after.last_name
        || before.phone_number != after.phone_number
}

/// Every workspace keeps at least one of these.
pub(super) fn is_active_owner(member: &Member) -> bool {
    member.enabled && member.role == roles::OWNER
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use web::from_json;

    use super::*;

    fn wrong_fields<T: serde::de::DeserializeOwned + JsonSchema + Validate + 'static>(body: &Value) -> Vec<String> {
        match from_json::<T>(body.to_string().as_bytes()) {
            Ok(_) => Vec::new(),
            Err(error) => error.details().iter().map(|problem| problem.field.clone()).collect(),
        }
    }

    #[test]
    fn a_username_is_an_address() {
        assert!(wrong_fields::<NewMember>(&json!({ "username": "ada@example.com", "role": null })).is_empty());
        assert_eq!(wrong_fields::<NewMember>(&json!({ "username": "ada", "role": "" })), ["username", "role"]);
        assert_eq!(wrong_fields::<NewMember>(&json!({})), ["username"]);
    }

    #[test]
    fn null_clears_only_what_may_be_absent() {
        let cleared = json!({ "teams": null, "firstName": null, "lastName": null, "phoneNumber": null });
        assert!(wrong_fields::<MemberChanges>(&cleared).is_empty());
        for member in ["role", "enabled", "onboarded", "consentsToPrivacyPolicy"] {
            assert_eq!(wrong_fields::<MemberChanges>(&json!({ member: null })), [member]);
        }
    }

    #[test]
    fn every_wrong_member_is_named() {
        let body = json!({ "role": " ", "teams": ["a", ""], "phoneNumber": "030" });
        assert_eq!(wrong_fields::<MemberChanges>(&body), ["role", "teams[1]", "phoneNumber"]);
    }
}
