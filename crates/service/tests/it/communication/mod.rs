//! `/communication/…`.

mod email_template;
