//! Whom a provider means: from the ID token, from `userinfo` where that says less, and from a list of addresses where the provider keeps
//! them apart.

use kernel::is_email;
use serde_json::{Map, Value};

use super::{
    OidcFailure,
    call::{self, Call},
    id_token::{IdTokenClaims, has_two_factors},
    metadata::{Directory, ProviderMetadata},
};
use crate::federation::Asserted;

const LONGEST_NAME: usize = 200;

pub(super) async fn of(
    directory: &Directory,
    metadata: &ProviderMetadata,
    verified_claim: Option<&str>,
    id_token: Option<IdTokenClaims>,
    access_token: Option<&str>,
) -> Result<Asserted, OidcFailure> {
    let (issuer, subject, mut claims) = match id_token {
        Some(token) => (token.iss, Some(token.sub), token.others),
        None => (metadata.issuer.clone().unwrap_or_else(|| metadata.token_endpoint.to_string()), None, Map::new()),
    };
    let two_factors = has_two_factors(claims.get("amr"));
    let asks_more = subject.is_none() || !claims.contains_key("email");
    let mut told = None;
    if let (true, Some(url), Some(token)) = (asks_more, &metadata.userinfo_endpoint, access_token) {
        let call = Call::get(url.clone()).bearer(token);
        let more: Map<String, Value> = call::json(directory.outbound(), call, "userinfo").await?;
        told = subject_in(&more);
        if subject.is_some() && subject != told {
            return Err(OidcFailure::refused("userinfo", "it is about somebody else"));
        }
        // An address and whether it was verified come from the same hand.
        claims.retain(|name, _| name != "email" && Some(name.as_str()) != verified_claim);
        claims.extend(more);
    }
    let subject = subject.or(told).ok_or_else(|| OidcFailure::refused("userinfo", "nobody is named"))?;
    let mut email = text(&claims, "email").filter(|email| is_email(email));
    let mut email_verified = verified_claim.is_some_and(|claim| is_true(claims.get(claim)));
    if let (Some(url), Some(token)) = (&metadata.emails_endpoint, access_token) {
        let call = Call::get(url.clone()).bearer(token);
        let list: Vec<Map<String, Value>> = call::json(directory.outbound(), call, "emails").await?;
        email = main_address(&list);
        email_verified = email.is_some();
    }
    let (first_name, last_name) = names(&claims);
    Ok(Asserted { issuer, subject, email, email_verified, first_name, last_name, session_ends_at: None, two_factors })
}

/// `sub`, or the number or text that providers without OpenID Connect call `id`.
fn subject_in(claims: &Map<String, Value>) -> Option<String> {
    let found = match claims.get("sub").or_else(|| claims.get("id"))? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(found).filter(|subject| !subject.is_empty() && subject.len() <= 1_024)
}

/// Some providers write the text.
fn is_true(value: Option<&Value>) -> bool {
    matches!(value, Some(Value::Bool(true))) || value.and_then(Value::as_str) == Some("true")
}

/// The address that the person uses most, of those that were verified.
fn main_address(list: &[Map<String, Value>]) -> Option<String> {
    let verified = |entry: &&Map<String, Value>| is_true(entry.get("verified"));
    let main = list.iter().filter(verified).find(|entry| is_true(entry.get("primary")));
    let entry = main.or_else(|| list.iter().find(verified))?;
    text(entry, "email").filter(|email| is_email(email))
}

fn text(claims: &Map<String, Value>, name: &str) -> Option<String> {
    let text = claims.get(name)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// First and last name; a name that comes as a whole is the first name.
fn names(claims: &Map<String, Value>) -> (Option<String>, Option<String>) {
    let name = |claim: &str| {
        let whole = text(claims, claim)?;
        let fits = whole.chars().count() <= LONGEST_NAME && !whole.chars().any(char::is_control);
        fits.then_some(whole)
    };
    match (name("given_name"), name("family_name")) {
        (None, None) => (name("name"), None),
        names => names,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn only_verified_addresses_count_and_the_main_one_first() {
        let list =
            |entries: Value| main_address(&entries.as_array().expect("a list").iter().map(map).collect::<Vec<_>>());
        let entry = |email: &str, primary: bool, verified: bool| json!({ "email": email, "primary": primary, "verified": verified });
        assert_eq!(
            list(json!([entry("a@x.example", false, true), entry("b@x.example", true, true)])).as_deref(),
            Some("b@x.example")
        );
        assert_eq!(
            list(json!([entry("a@x.example", false, true), entry("b@x.example", true, false)])).as_deref(),
            Some("a@x.example")
        );
        assert_eq!(list(json!([entry("b@x.example", true, false)])), None);
        assert_eq!(list(json!([])), None);
    }

    #[test]
    fn a_subject_is_a_text_or_a_number() {
        for (claims, subject) in [
            (json!({ "sub": "a" }), Some("a")),
            (json!({ "id": 4711 }), Some("4711")),
            (json!({ "sub": "" }), None),
            (json!({ "sub": null, "id": 1 }), None),
            (json!({ "sub": ["a"] }), None),
            (json!({}), None),
        ] {
            assert_eq!(subject_in(&map(&claims)).as_deref(), subject, "{claims}");
        }
    }
}
