//! What a covered assertion says, held against what was asked: the steps from `issuer` to `attributes`.

use std::time::Duration;

use bergshamra_xml::NodeId;
use kernel::{Timestamp, is_email};

use crate::{
    judge::{Covered, Expected},
    refusal::{Refusal, Step, require},
    shape::has_succeeded,
    xml::{ASSERTION, Tree},
};

/// How far the clocks of the two sides may be apart.
const SKEW: Duration = Duration::from_secs(60);
const BEARER: &str = "urn:oasis:names:tc:SAML:2.0:cm:bearer";

/// What an identity provider said about somebody. Every value was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub issuer: String,
    pub subject: NameId,
    /// As the provider wrote it; nobody's word but the provider's.
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub authenticated_at: Timestamp,
    pub session_ends_at: Option<Timestamp>,
    pub context_class: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameId {
    pub value: String,
    pub format: Option<String>,
}

impl Statement {
    /// Whether the provider says that two factors were shown.
    pub fn two_factors(&self) -> bool {
        let class = self.context_class.as_deref().unwrap_or_default();
        let standard = class.strip_prefix("urn:oasis:names:tc:SAML:2.0:ac:classes:").unwrap_or_default();
        class == "https://refeds.org/profile/mfa"
            || standard.contains("MobileTwoFactor")
            || matches!(standard, "TimeSyncToken" | "SmartcardPKI")
    }
}

pub(crate) fn check(
    response: &Tree<'_>,
    response_is_signed: bool,
    covered: &Covered<'_, '_>,
    expected: &Expected<'_>,
) -> Result<Statement, Refusal> {
    let issuer = issuer(response, covered, expected)?;
    status(response)?;
    destination(response, response_is_signed, expected)?;
    let confirmation = recipient(covered, expected)?;
    audience(covered, expected)?;
    in_response_to(response, covered.tree, confirmation, expected)?;
    let times = times(covered, confirmation, expected)?;
    let (subject, attributes) = attributes(covered)?;
    let email = attributes.first(EMAIL).or_else(|| Some(subject.value.clone()).filter(|value| is_email(value)));
    Ok(Statement {
        issuer,
        email: email.filter(|email| is_email(email)),
        first_name: attributes.first(FIRST_NAME),
        last_name: attributes.first(LAST_NAME),
        subject,
        authenticated_at: times.authenticated_at,
        session_ends_at: times.session_ends_at,
        context_class: times.context_class,
    })
}

impl Covered<'_, '_> {
    fn only(&self, local: &str) -> Option<NodeId> {
        self.tree.only(self.assertion, ASSERTION, local)
    }
}

fn issuer(response: &Tree<'_>, covered: &Covered<'_, '_>, expected: &Expected<'_>) -> Result<String, Refusal> {
    let issuer = covered.only("Issuer").and_then(|node| covered.tree.text(node)).filter(|issuer| !issuer.is_empty());
    let issuer = issuer.ok_or(Refusal::new(Step::Issuer, "the assertion does not say who issued it"))?;
    let known = expected.issuer.is_none_or(|expected| expected == issuer);
    require(known, Step::Issuer, "the assertion is from another identity provider")?;
    for node in response.named(response.root(), ASSERTION, "Issuer") {
        let same = response.text(node).is_some_and(|of_response| of_response == issuer);
        require(same, Step::Issuer, "response and assertion name different issuers")?;
    }
    Ok(issuer)
}

fn status(response: &Tree<'_>) -> Result<(), Refusal> {
    require(has_succeeded(response), Step::Status, "the status is not success")
}

fn destination(response: &Tree<'_>, is_signed: bool, expected: &Expected<'_>) -> Result<(), Refusal> {
    match response.attribute(response.root(), "Destination") {
        Some(destination) => {
            require(destination == expected.acs_url, Step::Destination, "is meant for another address")
        }
        None => require(!is_signed, Step::Destination, "a signed response does not say where it belongs"),
    }
}

/// The data of the one bearer confirmation.
fn recipient(covered: &Covered<'_, '_>, expected: &Expected<'_>) -> Result<NodeId, Refusal> {
    let tree = covered.tree;
    let refused = |reason| Refusal::new(Step::Recipient, reason);
    let subject = covered.only("Subject").ok_or_else(|| refused("there is not exactly one subject"))?;
    let confirmations = tree.named(subject, ASSERTION, "SubjectConfirmation");
    let bearers: Vec<NodeId> =
        confirmations.into_iter().filter(|node| tree.attribute(*node, "Method") == Some(BEARER)).collect();
    let [bearer] = bearers[..] else { return Err(refused("there is not exactly one bearer confirmation")) };
    let data = tree.only(bearer, ASSERTION, "SubjectConfirmationData");
    let data = data.ok_or_else(|| refused("the bearer confirmation has no data"))?;
    let recipient = tree.attribute(data, "Recipient");
    require(recipient == Some(expected.acs_url), Step::Recipient, "the recipient is another address")?;
    Ok(data)
}

fn audience(covered: &Covered<'_, '_>, expected: &Expected<'_>) -> Result<(), Refusal> {
    let tree = covered.tree;
    let conditions = covered.only("Conditions").ok_or(Refusal::new(Step::Audience, "there are no conditions"))?;
    let restrictions = tree.named(conditions, ASSERTION, "AudienceRestriction");
    require(!restrictions.is_empty(), Step::Audience, "the audience is not restricted")?;
    // Restrictions add up: each of them has to name us.
    let meant = restrictions.into_iter().all(|restriction| {
        let audiences = tree.named(restriction, ASSERTION, "Audience");
        audiences.into_iter().any(|node| tree.text(node).as_deref() == Some(expected.entity_id))
    });
    require(meant, Step::Audience, "is meant for another audience")
}

fn in_response_to(
    response: &Tree<'_>,
    tree: &Tree<'_>,
    confirmation: NodeId,
    expected: &Expected<'_>,
) -> Result<(), Refusal> {
    let confirmed = tree.attribute(confirmation, "InResponseTo") == Some(expected.request_id);
    require(confirmed, Step::InResponseTo, "the assertion does not answer this request")?;
    let answered = response.attribute(response.root(), "InResponseTo");
    let same = answered.is_none_or(|answered| answered == expected.request_id);
    require(same, Step::InResponseTo, "the response answers another request")
}

struct Times {
    authenticated_at: Timestamp,
    session_ends_at: Option<Timestamp>,
    context_class: Option<String>,
}

fn times(covered: &Covered<'_, '_>, confirmation: NodeId, expected: &Expected<'_>) -> Result<Times, Refusal> {
    let tree = covered.tree;
    let refused = |reason| Refusal::new(Step::Times, reason);
    let demand = |holds, reason| require(holds, Step::Times, reason);
    let instant = |node, name: &str| match tree.attribute(node, name) {
        None => Ok(None),
        Some(text) => text.parse::<Timestamp>().map(Some).map_err(|_| refused("a time is not a time")),
    };
    let has_begun = |begin: Option<Timestamp>| begin.is_none_or(|begin| begin <= expected.now.plus(SKEW));
    let has_ended = |end: Timestamp| expected.now.minus(SKEW) >= end;

    let issued = instant(covered.assertion, "IssueInstant")?.ok_or_else(|| refused("the assertion has no time"))?;
    demand(has_begun(Some(issued)), "the assertion is from the future")?;
    let end = instant(confirmation, "NotOnOrAfter")?.ok_or_else(|| refused("the confirmation does not end"))?;
    demand(!has_ended(end), "the confirmation has ended")?;
    demand(has_begun(instant(confirmation, "NotBefore")?), "the confirmation has not begun")?;
    for conditions in tree.named(covered.assertion, ASSERTION, "Conditions") {
        demand(has_begun(instant(conditions, "NotBefore")?), "the conditions have not begun")?;
        let ended = instant(conditions, "NotOnOrAfter")?.is_some_and(has_ended);
        demand(!ended, "the conditions have ended")?;
    }
    let statement = covered.only("AuthnStatement").ok_or_else(|| refused("there is not exactly one AuthnStatement"))?;
    let authenticated_at = instant(statement, "AuthnInstant")?.ok_or_else(|| refused("there is no AuthnInstant"))?;
    demand(has_begun(Some(authenticated_at)), "the sign-in is from the future")?;
    let recent = expected.authenticated_since.is_none_or(|since| authenticated_at.plus(SKEW) >= since);
    demand(recent, "the person signed in too long ago")?;
    let session_ends_at = instant(statement, "SessionNotOnOrAfter")?;
    demand(session_ends_at.is_none_or(|end| expected.now < end), "the session has ended")?;
    let context = tree.only(statement, ASSERTION, "AuthnContext");
    let class = context.and_then(|context| tree.only(context, ASSERTION, "AuthnContextClassRef"));
    Ok(Times { authenticated_at, session_ends_at, context_class: class.and_then(|class| tree.text(class)) })
}

const EMAIL: &[&str] = &[
    "email",
    "mail",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
    "urn:oid:0.9.2342.19200300.100.1.3",
];
const FIRST_NAME: &[&str] = &[
    "firstName",
    "givenName",
    "given_name",
    "first_name",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/givenname",
    "urn:oid:2.5.4.42",
];
const LAST_NAME: &[&str] = &[
    "lastName",
    "familyName",
    "family_name",
    "last_name",
    "surname",
    "sn",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/surname",
    "urn:oid:2.5.4.4",
];

/// The first value of every attribute, in the assertion's order.
struct Attributes(Vec<(String, String)>);

impl Attributes {
    fn first(&self, names: &[&str]) -> Option<String> {
        let value = |name: &&str| self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        names.iter().find_map(value)
    }
}

fn attributes(covered: &Covered<'_, '_>) -> Result<(NameId, Attributes), Refusal> {
    let tree = covered.tree;
    let refused = |reason| Refusal::new(Step::Attributes, reason);
    let name_id = covered.only("Subject").and_then(|subject| tree.only(subject, ASSERTION, "NameID"));
    let name_id = name_id.ok_or_else(|| refused("the subject has no NameID"))?;
    let value =
        tree.text(name_id).filter(|value| !value.is_empty()).ok_or_else(|| refused("the NameID is not a text"))?;
    let subject = NameId { value, format: tree.attribute(name_id, "Format").map(str::to_owned) };
    let mut found = Vec::new();
    for statement in tree.named(covered.assertion, ASSERTION, "AttributeStatement") {
        for attribute in tree.named(statement, ASSERTION, "Attribute") {
            let name = tree.attribute(attribute, "Name").ok_or_else(|| refused("an attribute has no name"))?;
            let values = tree.named(attribute, ASSERTION, "AttributeValue");
            let value = values.first().and_then(|value| tree.text(*value)).filter(|value| !value.is_empty());
            found.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    Ok((subject, Attributes(found)))
}
