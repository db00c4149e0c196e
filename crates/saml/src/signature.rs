//! The step `signature`: what an element says is what one of the connection's keys signed.

use bergshamra_c14n::{C14nMode, canonicalize_doc};
use bergshamra_xml::{NodeId, NodeSet};

use crate::{
    algorithms::Algorithms,
    certificates::Certificates,
    refusal::{Refusal, Step, require},
    shape::SignatureParts,
    xml::Tree,
};

/// Verifies the signature that is a child of `owner`. It covers `owner` as a whole, itself left out: the node whose canonical
/// form is digested is the node that the caller passes, and the reference only has to name it.
pub(crate) fn verify(
    tree: &Tree<'_>,
    owner: NodeId,
    parts: &SignatureParts,
    algorithms: &Algorithms,
    certificates: &Certificates,
) -> Result<(), Refusal> {
    let refused = |reason| Refusal::new(Step::Signature, reason);
    let id =
        tree.attribute(owner, "ID").filter(|id| !id.is_empty()).ok_or_else(|| refused("what is signed has no ID"))?;
    let reference = tree.attribute(parts.reference, "URI").and_then(|uri| uri.strip_prefix('#'));
    require(reference == Some(id), Step::Signature, "the reference is not to the signature's own parent")?;
    let signed_info = canonical(tree, parts.signed_info, None, &algorithms.signed_info_prefixes)?;
    let value = tree.base64(parts.value).ok_or_else(|| refused("the signature value is not base64"))?;
    let genuine = certificates.verify(algorithms.method, &signed_info, &value);
    require(genuine, Step::Signature, "no certificate of the connection verifies the signature")?;
    let content = canonical(tree, owner, Some(parts.signature), &algorithms.content_prefixes)?;
    let digest = tree.base64(parts.digest_value).ok_or_else(|| refused("the digest is not base64"))?;
    let same = algorithms.digest.of(&content).as_ref() == digest;
    require(same, Step::Signature, "the content is not what was signed")
}

/// The canonical form of a node with everything below it, `without` excepted.
pub(crate) fn canonical(
    tree: &Tree<'_>,
    node: NodeId,
    without: Option<NodeId>,
    prefixes: &[String],
) -> Result<Vec<u8>, Refusal> {
    let mut nodes = NodeSet::tree_without_comments(node, &tree.document);
    if let Some(left_out) = without {
        nodes.remove_id(left_out);
        tree.document.descendants(left_out).into_iter().for_each(|node| nodes.remove_id(node));
    }
    canonicalize_doc(&tree.document, C14nMode::Exclusive, Some(&nodes), prefixes)
        .map_err(|_| Refusal::new(Step::Signature, "cannot be canonicalised"))
}
