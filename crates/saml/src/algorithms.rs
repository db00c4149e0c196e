//! The algorithms that a signature may name. Whatever is not listed here does not exist.

use aws_lc_rs::digest;
use bergshamra_xml::NodeId;

use crate::{
    refusal::{Refusal, Step, require},
    shape::SignatureParts,
    xml::{EXCLUSIVE, Tree},
};

/// Prefixes that canonicalisation may be told to keep. Real messages name two or three, and each element looks at all of them:
/// tens of thousands would be seconds of work for one message.
const MAX_PREFIXES: usize = 16;

pub(crate) const ENVELOPED: &str = "http://www.w3.org/2000/09/xmldsig#enveloped-signature";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    pub(crate) fn of(self, bytes: &[u8]) -> digest::Digest {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, bytes)
    }

    fn from_uri(uri: &str) -> Option<Self> {
        match uri {
            "http://www.w3.org/2001/04/xmlenc#sha256" => Some(Self::Sha256),
            "http://www.w3.org/2001/04/xmldsig-more#sha384" => Some(Self::Sha384),
            "http://www.w3.org/2001/04/xmlenc#sha512" => Some(Self::Sha512),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignatureMethod {
    Rsa(Hash),
    Ecdsa(Hash),
}

impl SignatureMethod {
    fn from_uri(uri: &str) -> Option<Self> {
        match uri.strip_prefix("http://www.w3.org/2001/04/xmldsig-more#")? {
            "rsa-sha256" => Some(Self::Rsa(Hash::Sha256)),
            "rsa-sha384" => Some(Self::Rsa(Hash::Sha384)),
            "rsa-sha512" => Some(Self::Rsa(Hash::Sha512)),
            "ecdsa-sha256" => Some(Self::Ecdsa(Hash::Sha256)),
            "ecdsa-sha384" => Some(Self::Ecdsa(Hash::Sha384)),
            "ecdsa-sha512" => Some(Self::Ecdsa(Hash::Sha512)),
            _ => None,
        }
    }
}

/// What a signature asks for, all of it allowed.
pub(crate) struct Algorithms {
    pub(crate) method: SignatureMethod,
    pub(crate) digest: Hash,
    /// The `PrefixList` for `SignedInfo` and for what is signed.
    pub(crate) signed_info_prefixes: Vec<String>,
    pub(crate) content_prefixes: Vec<String>,
}

/// The step `algorithms`: SHA-2 with RSA or ECDSA; exclusive canonicalisation; the two transforms, in their order.
pub(crate) fn allowed_algorithms(tree: &Tree<'_>, parts: &SignatureParts) -> Result<Algorithms, Refusal> {
    let refused = |reason| Refusal::new(Step::Algorithms, reason);
    let uri = |node| tree.attribute(node, "Algorithm").unwrap_or_default();
    let canonical =
        |node| require(uri(node) == EXCLUSIVE, Step::Algorithms, "canonicalisation is not the exclusive one");
    canonical(parts.canonicalization)?;
    let method = SignatureMethod::from_uri(uri(parts.method)).ok_or_else(|| refused("unknown signature method"))?;
    let digest = Hash::from_uri(uri(parts.digest_method)).ok_or_else(|| refused("unknown digest method"))?;
    let [enveloped, content] = parts.transforms[..] else {
        return Err(refused("transforms are not enveloped-signature and exclusive canonicalisation"));
    };
    require(uri(enveloped) == ENVELOPED, Step::Algorithms, "the first transform is not enveloped-signature")?;
    let bare = tree.document.first_child(enveloped).is_none() && tree.document.first_child(parts.method).is_none();
    require(bare, Step::Algorithms, "an algorithm has parameters")?;
    canonical(content)?;
    Ok(Algorithms {
        method,
        digest,
        signed_info_prefixes: prefixes(tree, parts.canonicalization)?,
        content_prefixes: prefixes(tree, content)?,
    })
}

/// `InclusiveNamespaces`, the one parameter of exclusive canonicalisation.
fn prefixes(tree: &Tree<'_>, method: NodeId) -> Result<Vec<String>, Refusal> {
    let children: Vec<NodeId> = tree.children(method).collect();
    match children[..] {
        [] => Ok(Vec::new()),
        [only] if tree.is(only, EXCLUSIVE, "InclusiveNamespaces") && tree.children(only).next().is_none() => {
            let list = tree.attribute(only, "PrefixList").unwrap_or_default().split_ascii_whitespace();
            let prefixes: Vec<String> = list.map(str::to_owned).collect();
            require(prefixes.len() <= MAX_PREFIXES, Step::Algorithms, "canonicalisation keeps too many prefixes")?;
            Ok(prefixes)
        }
        _ => Err(Refusal::new(Step::Algorithms, "canonicalisation has unknown parameters")),
    }
}
