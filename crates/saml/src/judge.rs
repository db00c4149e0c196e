//! A response, judged step by step. The first failure ends it.

use std::sync::Arc;

use bergshamra_xml::NodeId;
use kernel::Timestamp;

use crate::{
    algorithms::allowed_algorithms,
    certificates::Certificates,
    encryption::{self, DecryptionKey},
    refusal::{Refusal, Step, require},
    shape::{self, Content, SignatureParts},
    signature,
    statement::{self, Statement},
    xml::{Tree, decode_base64},
};

/// How long a response may be as it arrives, in base64.
pub const MAX_ENCODED: usize = 256 * 1024;

/// What a response is held against.
pub struct Expected<'a> {
    pub certificates: &'a Certificates,
    pub decryption_keys: &'a [Arc<DecryptionKey>],
    /// What `Issuer` must say; `None` while the connection does not know it yet.
    pub issuer: Option<&'a str>,
    /// Our entity id for this connection.
    pub entity_id: &'a str,
    pub acs_url: &'a str,
    /// The `ID` of the request that is answered.
    pub request_id: &'a str,
    pub now: Timestamp,
    /// The person must have shown who they are since then.
    pub authenticated_since: Option<Timestamp>,
}

/// An assertion that a verified signature covers. Only this module makes one, and only from such a node.
pub(crate) struct Covered<'t, 'a> {
    pub(crate) tree: &'t Tree<'a>,
    pub(crate) assertion: NodeId,
}

/// Judges the value of the form field `SAMLResponse`.
pub fn judge(encoded: &str, expected: &Expected<'_>) -> Result<Statement, Refusal> {
    let text = decode(encoded)?;
    let tree = Tree::parse(&text)?;
    let shape = shape::response_shape(&tree)?;
    let response_is_signed = shape.response_signature.is_some();
    if let Some(parts) = &shape.response_signature {
        check_signature(&tree, tree.root(), parts, expected)?;
    }
    match shape.content {
        Content::Plain { assertion, signature } => {
            if let Some(parts) = &signature {
                check_signature(&tree, assertion, parts, expected)?;
            }
            require(response_is_signed || signature.is_some(), Step::Signature, "nothing is signed")?;
            statement::check(&tree, response_is_signed, &Covered { tree: &tree, assertion }, expected)
        }
        Content::Encrypted { encrypted } => {
            let plaintext = encryption::decrypt(&tree, encrypted, response_is_signed, expected.decryption_keys)?;
            let inner = Tree::parse(&plaintext)?;
            let signature = shape::assertion_shape(&inner)?;
            if let Some(parts) = &signature {
                check_signature(&inner, inner.root(), parts, expected)?;
            }
            require(response_is_signed || signature.is_some(), Step::Signature, "nothing is signed")?;
            let covered = Covered { tree: &inner, assertion: inner.root() };
            statement::check(&tree, response_is_signed, &covered, expected)
        }
    }
}

/// The step `encoding`.
fn decode(encoded: &str) -> Result<String, Refusal> {
    require(!encoded.trim().is_empty(), Step::Encoding, "there is no response")?;
    require(encoded.len() <= MAX_ENCODED, Step::Encoding, "is longer than 256 KiB")?;
    let bytes = decode_base64(encoded).ok_or_else(|| Refusal::new(Step::Encoding, "is not base64"))?;
    String::from_utf8(bytes).map_err(|_| Refusal::new(Step::Encoding, "is not UTF-8"))
}

fn check_signature(
    tree: &Tree<'_>,
    owner: NodeId,
    parts: &SignatureParts,
    expected: &Expected<'_>,
) -> Result<(), Refusal> {
    let algorithms = allowed_algorithms(tree, parts)?;
    signature::verify(tree, owner, parts, &algorithms, expected.certificates)
}
