//! What a new member and a change of one must look like. Pure.

use kernel::{EMAIL_PATTERN, Problems, is_email};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Given, Patch, Validate};

use super::Member;
use crate::{
    people,
    roles::{self, Role},
};

/// The body of `POST /account/tenant/user`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewMember {
    /// The person's e-mail address.
    #[schemars(length(min = 3, max = 254), regex(pattern = EMAIL_PATTERN))]
    pub username: String,
    /// A role's key; the app's default role without it.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub role: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    /// Whether no invitation is mailed.
    pub mute_notifications: Option<bool>,
}

impl Validate for NewMember {
    fn validate(&self, problems: &mut Problems) {
        problems.check("username", is_email(&self.username), "must be an email address");
        if let Some(role) = &self.role {
            problems.text("role", role);
        }
        for (field, name) in [("firstName", &self.first_name), ("lastName", &self.last_name)] {
            problems.optional_text(field, name.as_deref().unwrap_or_default());
        }
    }
}

/// The body of `PUT /account/tenant/user/{user_id}`: what is missing stays as it is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberChanges {
    /// A role's key.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub role: Given<String>,
    pub enabled: Given<bool>,
    #[schemars(length(max = 1000), inner(length(min = 1), regex(pattern = r"\S")))]
    pub teams: Patch<Vec<String>>,
    /// Of the person, in all their workspaces.
    pub first_name: Patch<String>,
    /// Of the person, in all their workspaces.
    pub last_name: Patch<String>,
    pub onboarded: Given<bool>,
    pub consents_to_privacy_policy: Given<bool>,
    /// Of the person, in all their workspaces; E.164 such as `+4930123456`.
    #[schemars(regex(pattern = PHONE_NUMBER))]
    pub phone_number: Patch<String>,
}

const PHONE_NUMBER: &str = r"^\+[1-9][0-9]{6,14}$";

/// As in [`PHONE_NUMBER`].
fn is_phone_number(text: &str) -> bool {
    let Some(digits) = text.strip_prefix('+') else { return false };
    (7..=15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0')
}

impl Validate for MemberChanges {
    fn validate(&self, problems: &mut Problems) {
        if let Some(role) = self.role.value() {
            problems.text("role", role);
        }
        if let Some(teams) = self.teams.value() {
            problems.list("teams", teams);
            for (index, team) in teams.iter().enumerate() {
                problems.text(&format!("teams[{index}]"), team);
            }
        }
        for (field, name) in [("firstName", &self.first_name), ("lastName", &self.last_name)] {
            problems.optional_text(field, name.value().map_or("", String::as_str));
        }
        if let Some(number) = self.phone_number.value() {
            problems.check("phoneNumber", is_phone_number(number), "must be a phone number such as +4930123456");
        }
    }
}

impl MemberChanges {
    /// `role` is what the changes' role key stands for.
    pub(super) fn apply(&self, before: &Member, role: Option<&Role>) -> Member {
        let name = |change: &Patch<String>, before: &str| {
            change.clone().apply(Some(before.to_owned())).unwrap_or_default().trim().to_owned()
        };
        let (first_name, last_name) =
            (name(&self.first_name, &before.first_name), name(&self.last_name, &before.last_name));
        Member {
            role: role.map_or_else(|| before.role.clone(), |role| role.key.clone()),
            role_id: role.map_or(before.role_id, |role| role.id),
            enabled: self.enabled.or(before.enabled),
            teams: self.teams.clone().apply(Some(before.teams.clone())).unwrap_or_default(),
            full_name: people::full_name(&first_name, &last_name),
            first_name,
            last_name,
            onboarded: self.onboarded.or(before.onboarded),
            consents_to_privacy_policy: self.consents_to_privacy_policy.or(before.consents_to_privacy_policy),
            phone_number: self.phone_number.clone().apply(before.phone_number.clone()),
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

    fn wrong_fields<T: serde::de::DeserializeOwned + JsonSchema + Validate>(body: &Value) -> Vec<String> {
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

    #[test]
    fn phone_numbers_are_e164() {
        for (number, good) in [("+4930123456", true), ("+0301234567", false), ("+123456", false), ("4930123456", false)]
        {
            assert_eq!(is_phone_number(number), good, "{number}");
        }
    }
}
