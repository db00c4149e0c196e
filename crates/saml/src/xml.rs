//! The one place where XML is parsed, and the only ways in which it is read: by namespace and local name, from a known parent.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bergshamra_xml::{
    Document, Element, NodeId, NodeKind,
    uppsala::{Parser, QName},
};

use crate::refusal::{Refusal, Step, require};

pub(crate) const ASSERTION: &str = "urn:oasis:names:tc:SAML:2.0:assertion";
pub(crate) const PROTOCOL: &str = "urn:oasis:names:tc:SAML:2.0:protocol";
pub(crate) const METADATA: &str = "urn:oasis:names:tc:SAML:2.0:metadata";
pub(crate) const DSIG: &str = "http://www.w3.org/2000/09/xmldsig#";
pub(crate) const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";
pub(crate) const XENC: &str = "http://www.w3.org/2001/04/xmlenc#";
pub(crate) const XENC11: &str = "http://www.w3.org/2009/xmlenc11#";
pub(crate) const XML: &str = "http://www.w3.org/XML/1998/namespace";
pub(crate) const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

const MAX_DEPTH: u32 = 64;
const MAX_NODES: usize = 5_000;
/// In one tag with the text behind it, and in all. Real messages have about ten, and one for each value of an attribute.
const MAX_EQUALS: usize = 64;
const MAX_EQUALS_IN_ALL: usize = 4_096;
/// Namespaces that one tag may declare. Messages declare a few, metadata of federations about twenty.
const MAX_DECLARATIONS: usize = 24;

/// A parsed document in which there are elements and texts and nothing else.
pub(crate) struct Tree<'a> {
    pub(crate) document: Document<'a>,
    root: NodeId,
}

/// Whether there is little enough to parse. Asked of the text, since the parser compares each attribute of a tag with all
/// others, and looks each prefix up among all declarations around it: what it must never see is a tag with thousands of them,
/// nor thousands of tags inside thousands of declarations.
fn is_small(content: &str) -> bool {
    let (mut tags, mut equals) = (0, 0);
    for tag in content.split('<') {
        let here = tag.bytes().filter(|byte| *byte == b'=').count();
        (tags, equals) = (tags + 1, equals + here);
        let declares_little = here <= MAX_DECLARATIONS || tag.matches("xmlns").count() <= MAX_DECLARATIONS;
        // Each element has an end tag, too.
        if here > MAX_EQUALS || equals > MAX_EQUALS_IN_ALL || tags > 2 * MAX_NODES || !declares_little {
            return false;
        }
    }
    true
}

impl<'a> Tree<'a> {
    /// No DTD, entity, comment, instruction or CDATA section: with these, two readers see two values.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Refusal> {
        let refused = |reason| Refusal::new(Step::WellFormed, reason);
        let body = text.trim_start_matches('\u{feff}');
        let content =
            body.strip_prefix("<?xml ").map_or(body, |rest| rest.split_once("?>").map_or(rest, |(_, rest)| rest));
        // In well-formed XML a `<` begins markup and nothing else, so these two cover all that is to be refused.
        require(!content.contains("<!"), Step::WellFormed, "has a DOCTYPE, a comment or a CDATA section")?;
        require(!content.contains("<?"), Step::WellFormed, "has a processing instruction")?;
        require(is_small(content), Step::WellFormed, "has too many tags or attributes")?;
        let parser = Parser::new().with_forbid_dtd(true).with_forbid_entities(true).with_max_depth(MAX_DEPTH);
        let document = parser.parse(text).map_err(|_| refused("is not well-formed XML, or nests too deeply"))?;
        let declared = document.xml_declaration.as_ref();
        let encoding = declared.and_then(|declaration| declaration.encoding.as_deref());
        let utf8 = encoding.is_none_or(|encoding| encoding.eq_ignore_ascii_case("utf-8"));
        require(utf8, Step::WellFormed, "declares an encoding other than UTF-8")?;
        let root = document.document_element().ok_or_else(|| refused("has no element"))?;
        let tree = Self { document, root };
        let nodes = tree.document.descendants(tree.document.root());
        require(nodes.len() <= MAX_NODES, Step::WellFormed, "has too many nodes")?;
        let plain = nodes.iter().all(|node| {
            matches!(
                tree.document.node_kind(*node),
                Some(NodeKind::Element(_) | NodeKind::Text(_) | NodeKind::Document)
            )
        });
        require(plain, Step::WellFormed, "has nodes other than elements and texts")?;
        Ok(tree)
    }

    pub(crate) fn root(&self) -> NodeId {
        self.root
    }

    pub(crate) fn element(&self, node: NodeId) -> Option<&Element<'a>> {
        self.document.element(node)
    }

    /// All elements, the root first, in the document's order.
    pub(crate) fn elements(&self) -> impl Iterator<Item = (NodeId, &Element<'a>)> {
        let below = self.document.descendants(self.root);
        std::iter::once(self.root)
            .chain(below.into_iter().filter(|node| *node != self.root))
            .filter_map(|node| self.element(node).map(|element| (node, element)))
    }

    pub(crate) fn is(&self, node: NodeId, namespace: &str, local: &str) -> bool {
        self.element(node).is_some_and(|element| is_named(&element.name, namespace, local))
    }

    /// The elements directly below.
    pub(crate) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.document.children_iter(node).filter(|child| self.element(*child).is_some())
    }

    /// The elements of this name directly below.
    pub(crate) fn named(&self, node: NodeId, namespace: &str, local: &str) -> Vec<NodeId> {
        self.children(node).filter(|child| self.is(*child, namespace, local)).collect()
    }

    /// The only element of this name directly below. `None` also when there are several: no choice is made here.
    pub(crate) fn only(&self, node: NodeId, namespace: &str, local: &str) -> Option<NodeId> {
        match self.named(node, namespace, local)[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The attribute without a prefix.
    pub(crate) fn attribute(&self, node: NodeId, local: &str) -> Option<&str> {
        let attributes = &self.element(node)?.attributes;
        let found = attributes.iter().find(|a| a.name.namespace_uri.is_none() && a.name.local_name == local)?;
        Some(&found.value)
    }

    /// The text of an element that holds nothing but text, without the white space around it.
    pub(crate) fn text(&self, node: NodeId) -> Option<String> {
        let mut text = String::new();
        for child in self.document.children_iter(node) {
            match self.document.node_kind(child) {
                Some(NodeKind::Text(part)) => text.push_str(part),
                _ => return None,
            }
        }
        Some(text.trim_matches(is_space).to_owned())
    }

    /// The bytes of an element that holds base64.
    pub(crate) fn base64(&self, node: NodeId) -> Option<Vec<u8>> {
        decode_base64(&self.text(node)?)
    }
}

pub(crate) fn is_named(name: &QName<'_>, namespace: &str, local: &str) -> bool {
    name.namespace_uri.as_deref() == Some(namespace) && name.local_name == local
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

/// White space may stand anywhere; otherwise there is one way to write each value.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let packed: String = text.chars().filter(|letter| !is_space(*letter)).collect();
    BASE64_STANDARD.decode(packed).ok()
}

/// For texts and for attribute values in double quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push_str(&format!("&#x{:X};", letter as u32)),
            other => escaped.push(other),
        }
    }
    escaped
}
