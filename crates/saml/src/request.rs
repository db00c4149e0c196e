//! The request that sends somebody to their identity provider: in the address, or in a form.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kernel::{Error, Result, Timestamp};

use crate::{
    algorithms::{ENVELOPED, Hash},
    signature::canonical,
    signing::RequestKey,
    xml::{ASSERTION, DSIG, EXCLUSIVE, PROTOCOL, Tree, escape},
};

/// An `AuthnRequest`. Its `id` must begin with a letter or an underscore.
pub struct AuthnRequest<'a> {
    pub id: &'a str,
    pub issued_at: Timestamp,
    /// The identity provider's address.
    pub login_url: &'a str,
    pub acs_url: &'a str,
    pub entity_id: &'a str,
    /// Whether a sign-in that the provider remembers is not enough.
    pub force_authn: bool,
    /// Comes back with the answer.
    pub relay_state: &'a str,
    /// Who is about to sign in, if that is known. In the address and not as `Subject`, which a common directory refuses.
    pub login_hint: Option<&'a str>,
}

/// The fields of a form that a browser posts to `action`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostForm {
    pub action: String,
    pub saml_request: String,
    pub relay_state: String,
}

impl AuthnRequest<'_> {
    /// The address that the browser is redirected to. The signature is over the query as it stands there.
    pub fn redirect(&self, key: Option<&RequestKey>) -> Result<String> {
        let request = BASE64_STANDARD.encode(deflate(self.xml("").as_bytes()));
        let mut query = format!("SAMLRequest={}&RelayState={}", encode(&request), encode(self.relay_state));
        if let Some(key) = key {
            query.push_str(&format!("&SigAlg={}", encode(key.algorithm())));
            let value = BASE64_STANDARD.encode(key.sign(query.as_bytes())?);
            query.push_str(&format!("&Signature={}", encode(&value)));
        }
        // Beside what is signed, which ends with the signature.
        query.push_str(&self.hint().map(|hint| format!("&{hint}")).unwrap_or_default());
        Ok(self.address(&query))
    }

    fn hint(&self) -> Option<String> {
        self.login_hint.map(|hint| format!("login_hint={}", encode(hint)))
    }

    /// The identity provider's address with a query.
    fn address(&self, query: &str) -> String {
        let address = self.login_url.split_once('#').map_or(self.login_url, |(address, _)| address);
        let joint = match address {
            address if address.ends_with(['?', '&']) => "",
            address if address.contains('?') => "&",
            _ => "?",
        };
        format!("{address}{joint}{query}")
    }

    pub fn form(&self, key: Option<&RequestKey>) -> Result<PostForm> {
        let xml = match key {
            Some(key) => self.xml(&self.signature(key)?),
            None => self.xml(""),
        };
        Ok(PostForm {
            action: self.hint().map_or_else(|| self.login_url.to_owned(), |hint| self.address(&hint)),
            saml_request: BASE64_STANDARD.encode(xml),
            relay_state: self.relay_state.to_owned(),
        })
    }

    fn xml(&self, signature: &str) -> String {
        let force = if self.force_authn { " ForceAuthn=\"true\"" } else { "" };
        format!(
            "<samlp:AuthnRequest xmlns:samlp=\"{PROTOCOL}\" xmlns:saml=\"{ASSERTION}\" ID=\"{id}\" Version=\"2.0\" \
             IssueInstant=\"{issued_at}\" Destination=\"{destination}\"{force} \
             ProtocolBinding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST\" AssertionConsumerServiceURL=\"{acs}\">\
             <saml:Issuer>{issuer}</saml:Issuer>{signature}<samlp:NameIDPolicy AllowCreate=\"true\"/>\
             </samlp:AuthnRequest>",
            id = escape(self.id),
            issued_at = self.issued_at,
            destination = escape(self.login_url),
            acs = escape(self.acs_url),
            issuer = escape(self.entity_id),
        )
    }

    /// An enveloped signature over the request without it.
    fn signature(&self, key: &RequestKey) -> Result<String> {
        let content = canonical_form(&self.xml(""))?;
        let digest = BASE64_STANDARD.encode(Hash::Sha256.of(&content));
        let info = format!(
            "<ds:SignedInfo xmlns:ds=\"{DSIG}\"><ds:CanonicalizationMethod Algorithm=\"{EXCLUSIVE}\"/>\
             <ds:SignatureMethod Algorithm=\"{method}\"/><ds:Reference URI=\"#{id}\"><ds:Transforms>\
             <ds:Transform Algorithm=\"{ENVELOPED}\"/><ds:Transform Algorithm=\"{EXCLUSIVE}\"/></ds:Transforms>\
             <ds:DigestMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"/>\
             <ds:DigestValue>{digest}</ds:DigestValue></ds:Reference></ds:SignedInfo>",
            method = key.algorithm(),
            id = escape(self.id),
        );
        let value = BASE64_STANDARD.encode(key.sign(&canonical_form(&info)?)?);
        Ok(format!(
            "<ds:Signature xmlns:ds=\"{DSIG}\">{info}<ds:SignatureValue>{value}</ds:SignatureValue></ds:Signature>"
        ))
    }
}

fn canonical_form(xml: &str) -> Result<Vec<u8>> {
    let failed = |refusal| Error::internal(format!("a SAML request of our own: {refusal}"));
    let tree = Tree::parse(xml).map_err(failed)?;
    canonical(&tree, tree.root(), None, &[]).map_err(failed)
}

/// DEFLATE (RFC 1951) in stored blocks: the binding asks for the format, and a request is too short to gain from more.
fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut stream = Vec::with_capacity(bytes.len() + 5);
    let mut blocks = bytes.chunks(usize::from(u16::MAX)).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    stream
}

/// Percent-encoding that leaves only unreserved characters.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}
