//! What handlers take from a request, each with the API's error shape: a JSON body, a form, the query, the path, a
//! header.

mod body;
mod form;
mod header;
mod json;
mod params;
mod path;
mod problem;
#[cfg(test)]
mod properties;
mod reader;
mod survey;

pub use body::{RawBody, Valid, ValidOrNone, Validate, from_json};
pub use form::Form;
pub use header::{optional_header, required_header};
pub use kernel::Page;
pub use params::{Params, form_fields};
pub use path::Path;
