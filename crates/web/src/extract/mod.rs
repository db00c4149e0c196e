//! What handlers take from a request, each with the API's error shape: a JSON body, a form, the query, the path, a
//! header.

mod batch;
mod body;
mod form;
mod header;
mod json;
mod media_type;
mod params;
mod path;
mod problem;
#[cfg(test)]
mod properties;
mod reader;
mod shape;
mod stream;
mod survey;

pub use batch::{Entries, EntryError};
pub use body::{RawBody, Valid, ValidOrNone, Validate, from_json, from_value, not_json, read_json};
pub use form::{Form, LenientForm};
pub use header::{IfNoneMatch, optional_header, required_header};
pub use json::parse as parse_json;
pub use kernel::Page;
pub use media_type::MediaType;
pub use params::{LenientParams, Params, form_fields};
pub use path::Path;
pub use stream::BodyStream;
