//! QR codes as SVG, drawn as one path: no image to load, no style to allow.

use std::fmt::Write as _;

use kernel::{Error, Result};
use qrcodegen::{QrCode, QrCodeEcc};

use crate::Escaped;

/// The empty margin that readers need, in modules.
const MARGIN: i32 = 4;

pub(super) fn svg(label: &str, text: &str) -> Result<String> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).map_err(|_| Error::internal("too long for a QR code"))?;
    let mut path = String::new();
    for y in 0..code.size() {
        for x in (0..code.size()).filter(|x| code.get_module(*x, y)) {
            write!(path, "M{},{}h1v1h-1z", x + MARGIN, y + MARGIN).expect("a String takes any text");
        }
    }
    let (size, label) = (code.size() + 2 * MARGIN, Escaped(label));
    Ok(format!(
        "<svg class=\"qr\" role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 {size} {size}\" \
         shape-rendering=\"crispEdges\"><path fill=\"#fff\" d=\"M0,0h{size}v{size}h-{size}z\"/>\
         <path fill=\"#000\" d=\"{path}\"/></svg>\n"
    ))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_code_is_square_and_labelled() {
        let svg = super::svg("Scan \"me\"", "otpauth://totp/x").unwrap();
        assert!(svg.contains("viewBox=\"0 0 33 33\"") && svg.contains("aria-label=\"Scan &quot;me&quot;\""));
        assert!(super::svg("", &"x".repeat(5000)).is_err());
    }
}
