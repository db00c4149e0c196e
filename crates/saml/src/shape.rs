//! The shape that a document must have before any of its signatures is looked at.
//!
//! Each rule closes a family of attacks by which a reader and a verifier see different things: one response and one assertion,
//! each signature a child of what it signs, ids that are unique and spelled in one way, every name in its own namespace.

use std::collections::HashSet;

use bergshamra_xml::{Element, NodeId};

use crate::{
    refusal::{Refusal, Step, require},
    xml::{ASSERTION, DSIG, EXCLUSIVE, PROTOCOL, Tree, XENC, XENC11, XML, XSI, is_named},
};

/// Where the parts of an acceptable document are.
pub(crate) struct Shape {
    /// Of the response itself.
    pub(crate) response_signature: Option<SignatureParts>,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    Plain { assertion: NodeId, signature: Option<SignatureParts> },
    Encrypted { encrypted: NodeId },
}

/// The children of a signature, each found in its one place.
pub(crate) struct SignatureParts {
    pub(crate) signature: NodeId,
    pub(crate) signed_info: NodeId,
    pub(crate) canonicalization: NodeId,
    pub(crate) method: NodeId,
    pub(crate) reference: NodeId,
    pub(crate) transforms: Vec<NodeId>,
    pub(crate) digest_method: NodeId,
    pub(crate) digest_value: NodeId,
    pub(crate) value: NodeId,
}

fn refused(reason: &'static str) -> Refusal {
    Refusal::new(Step::Shape, reason)
}

fn demand(holds: bool, reason: &'static str) -> Result<(), Refusal> {
    require(holds, Step::Shape, reason)
}

/// The step `shape` for a whole response.
pub(crate) fn response_shape(tree: &Tree<'_>) -> Result<Shape, Refusal> {
    let response = tree.root();
    demand(tree.is(response, PROTOCOL, "Response"), "is not a SAML response")?;
    names_and_ids(tree)?;
    demand(tree.attribute(response, "Version") == Some("2.0"), "is not SAML 2.0")?;
    let count = |local| tree.elements().filter(|(_, element)| is_named(&element.name, ASSERTION, local)).count();
    let (plain, encrypted) = (count("Assertion"), count("EncryptedAssertion"));
    if plain + encrypted == 0 {
        // An identity provider that could not sign somebody in says so in a response without an assertion.
        require(has_succeeded(tree), Step::Status, "the identity provider did not sign the person in")?;
    }
    demand(plain + encrypted == 1, "does not have exactly one assertion")?;
    let content = match tree.only(response, ASSERTION, "Assertion") {
        Some(assertion) => Content::Plain { assertion, signature: assertion_signature(tree, assertion)? },
        None => {
            let encrypted = tree.only(response, ASSERTION, "EncryptedAssertion");
            Content::Encrypted { encrypted: encrypted.ok_or_else(|| refused("the assertion is not in the response"))? }
        }
    };
    let response_signature = signature_in(tree, response)?;
    let mut known: Vec<NodeId> = response_signature.iter().map(|parts| parts.signature).collect();
    if let Content::Plain { signature: Some(parts), .. } = &content {
        known.push(parts.signature);
    }
    only_these_signatures(tree, &known)?;
    Ok(Shape { response_signature, content })
}

/// The step `shape` for an assertion that was decrypted: the root of a document of its own.
pub(crate) fn assertion_shape(tree: &Tree<'_>) -> Result<Option<SignatureParts>, Refusal> {
    let assertion = tree.root();
    demand(tree.is(assertion, ASSERTION, "Assertion"), "what was encrypted is not an assertion")?;
    names_and_ids(tree)?;
    let inside = tree.elements().skip(1).any(|(_, element)| {
        ["Assertion", "EncryptedAssertion"].iter().any(|local| is_named(&element.name, ASSERTION, local))
            || is_named(&element.name, PROTOCOL, "Response")
    });
    demand(!inside, "there is an assertion inside the assertion")?;
    let signature = assertion_signature(tree, assertion)?;
    let known: Vec<NodeId> = signature.iter().map(|parts| parts.signature).collect();
    only_these_signatures(tree, &known)?;
    Ok(signature)
}

pub(crate) fn has_succeeded(tree: &Tree<'_>) -> bool {
    let code = tree.only(tree.root(), PROTOCOL, "Status").and_then(|status| tree.only(status, PROTOCOL, "StatusCode"));
    code.and_then(|code| tree.attribute(code, "Value")) == Some("urn:oasis:names:tc:SAML:2.0:status:Success")
}

fn assertion_signature(tree: &Tree<'_>, assertion: NodeId) -> Result<Option<SignatureParts>, Refusal> {
    demand(tree.attribute(assertion, "Version") == Some("2.0"), "the assertion is not SAML 2.0")?;
    signature_in(tree, assertion)
}

fn only_these_signatures(tree: &Tree<'_>, known: &[NodeId]) -> Result<(), Refusal> {
    let mut found = tree.elements().filter(|(_, element)| is_named(&element.name, DSIG, "Signature"));
    demand(found.all(|(node, _)| known.contains(&node)), "a signature stands where none belongs")
}

fn signature_in(tree: &Tree<'_>, owner: NodeId) -> Result<Option<SignatureParts>, Refusal> {
    match tree.named(owner, DSIG, "Signature")[..] {
        [] => Ok(None),
        [signature] => signature_parts(tree, signature).map(Some),
        _ => Err(refused("an element has several signatures")),
    }
}

/// Exactly these children in this order, nothing left out and nothing beside them.
fn signature_parts(tree: &Tree<'_>, signature: NodeId) -> Result<SignatureParts, Refusal> {
    let wrong = || refused("a signature has missing or unexpected parts");
    let children = |node: NodeId, names: &[&str]| {
        let found: Vec<NodeId> = tree.children(node).collect();
        let fits =
            found.len() == names.len() && found.iter().zip(names).all(|(child, name)| tree.is(*child, DSIG, name));
        if fits { Ok(found) } else { Err(wrong()) }
    };
    let top = children(signature, &["SignedInfo", "SignatureValue", "KeyInfo"])
        .or_else(|_| children(signature, &["SignedInfo", "SignatureValue"]))?;
    let info = children(top[0], &["CanonicalizationMethod", "SignatureMethod", "Reference"])?;
    let reference = children(info[2], &["Transforms", "DigestMethod", "DigestValue"])?;
    let transforms: Vec<NodeId> = tree.children(reference[0]).collect();
    demand(transforms.iter().all(|node| tree.is(*node, DSIG, "Transform")), "a transform is something else")?;
    Ok(SignatureParts {
        signature,
        signed_info: top[0],
        canonicalization: info[0],
        method: info[1],
        reference: info[2],
        transforms,
        digest_method: reference[1],
        digest_value: reference[2],
        value: top[1],
    })
}

/// The names that the standards define and that may occur in a response.
const ASSERTION_NAMES: &str = "Advice Assertion AssertionIDRef AssertionURIRef Attribute AttributeStatement AttributeValue Audience \
     AudienceRestriction AuthenticatingAuthority AuthnContext AuthnContextClassRef AuthnContextDecl \
     AuthnContextDeclRef AuthnStatement Conditions EncryptedAssertion Issuer NameID OneTimeUse \
     ProxyRestriction Subject SubjectConfirmation SubjectConfirmationData SubjectLocality";
const PROTOCOL_NAMES: &str = "Extensions Response Status StatusCode StatusDetail StatusMessage";
const DSIG_NAMES: &str = "CanonicalizationMethod DigestMethod DigestValue Exponent KeyInfo KeyName KeyValue Modulus RSAKeyValue \
     Reference Signature SignatureMethod SignatureValue SignedInfo Transform Transforms X509Certificate \
     X509Data X509IssuerName X509IssuerSerial X509SKI X509SerialNumber X509SubjectName";
const XENC_NAMES: &str = "CipherData CipherValue EncryptedData EncryptedKey EncryptionMethod";
const XENC11_NAMES: &str = "MGF";
const EXCLUSIVE_NAMES: &str = "InclusiveNamespaces";
/// Names of the standards that have no place in a response, in whatever namespace.
const UNWANTED_NAMES: &str = "BaseID CipherReference Condition DataReference EncryptedAttribute EncryptedID Evidence KeyReference \
     Manifest Object ReferenceList RetrievalMethod SignatureProperties SignatureProperty Statement XPath \
     stylesheet transform";
/// Attributes by which something is found or decided. With a prefix they would be others, to some readers the same.
const ATTRIBUTE_NAMES: &str = "Algorithm AssertionID AuthnInstant Destination Format ID InResponseTo IssueInstant Method Name NameFormat \
     NotBefore NotOnOrAfter PrefixList Recipient SessionNotOnOrAfter Type URI Value Version";

fn names_of(namespace: Option<&str>) -> Option<&'static str> {
    match namespace? {
        ASSERTION => Some(ASSERTION_NAMES),
        PROTOCOL => Some(PROTOCOL_NAMES),
        DSIG => Some(DSIG_NAMES),
        XENC => Some(XENC_NAMES),
        XENC11 => Some(XENC11_NAMES),
        EXCLUSIVE => Some(EXCLUSIVE_NAMES),
        _ => None,
    }
}

fn is_defined(local: &str) -> bool {
    [ASSERTION_NAMES, PROTOCOL_NAMES, DSIG_NAMES, XENC_NAMES, XENC11_NAMES, EXCLUSIVE_NAMES, UNWANTED_NAMES]
        .iter()
        .any(|names| names.split(' ').any(|name| name.eq_ignore_ascii_case(local)))
}

fn names_and_ids(tree: &Tree<'_>) -> Result<(), Refusal> {
    let mut ids = HashSet::new();
    for (_, element) in tree.elements() {
        let local: &str = &element.name.local_name;
        match names_of(element.name.namespace_uri.as_deref()) {
            Some(names) => demand(
                names.split(' ').any(|name| name == local),
                "has an element that does not belong into a response",
            )?,
            None => demand(!is_defined(local), "has an element in a foreign namespace that is named like SAML's")?,
        }
        attributes(element, &mut ids)?;
    }
    Ok(())
}

fn attributes(element: &Element<'_>, ids: &mut HashSet<String>) -> Result<(), Refusal> {
    for attribute in &element.attributes {
        let local: &str = &attribute.name.local_name;
        match attribute.name.namespace_uri.as_deref() {
            Some(XSI) => {}
            Some(XML) => demand(matches!(local, "lang" | "space"), "has an xml: attribute")?,
            Some(_) => {
                let taken = ATTRIBUTE_NAMES.split(' ').any(|name| name.eq_ignore_ascii_case(local));
                demand(!taken, "has a prefixed attribute that is named like SAML's")?;
            }
            None if local.eq_ignore_ascii_case("id") || local.eq_ignore_ascii_case("assertionid") => {
                demand(is_id(element, local), "has an id that is spelled in another way or in another place")?;
                demand(ids.insert(attribute.value.to_string()), "has an id twice")?;
            }
            None => {}
        }
    }
    Ok(())
}

/// SAML writes `ID`, on the response and the assertion; signatures and encryption write `Id`.
fn is_id(element: &Element<'_>, local: &str) -> bool {
    match element.name.namespace_uri.as_deref() {
        Some(ASSERTION | PROTOCOL) => local == "ID" && matches!(&*element.name.local_name, "Response" | "Assertion"),
        Some(DSIG | XENC) => local == "Id",
        _ => false,
    }
}
