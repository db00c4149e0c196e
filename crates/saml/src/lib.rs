//! SAML 2.0 for a service provider: requests, metadata, and the judging of responses. Bytes in, a checked statement out: no I/O,
//! no database, and the time is passed in.
//!
//! Strangers' XML decides here who somebody is, so a response is read in one way only. It is parsed once; everything that SAML
//! and XML signatures allow but nobody needs is refused before a signature is looked at ([`mod@shape`]); and the identity is read
//! from the very node of the very tree that was canonicalised and whose digest was signed. Nothing is ever looked up by its id.
//!
//! The parser and the canonicaliser are `bergshamra`'s. Its verifier is not used: it resolves references to files, looks keys up in
//! the message and knows forty algorithms, while the profile that is accepted here (one reference, to the signature's own parent,
//! two transforms) is verified in a page of code that can be read beside it.

mod algorithms;
mod certificates;
mod encryption;
mod judge;
pub mod metadata;
mod refusal;
mod request;
mod shape;
mod signature;
mod signing;
mod statement;
mod xml;

pub use certificates::{CertificateInfo, Certificates};
pub use encryption::DecryptionKey;
pub use judge::{Expected, MAX_ENCODED, judge};
pub use refusal::{Refusal, Step};
pub use request::{AuthnRequest, PostForm};
pub use signing::{RequestHash, RequestKey};
pub use statement::{NameId, Statement};
