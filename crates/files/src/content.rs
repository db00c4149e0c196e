//! What a file is: which types are shown in the browser, whether the first bytes are of that type, and what a picture
//! carries beside itself. Pure.

/// How many bytes tell a type.
pub(crate) const FIRST: usize = 16;

/// Shown in place; everything else is saved, because files share the origin of the login pages.
pub(crate) const SHOWN: [&str; 6] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "text/plain", "application/pdf"];

/// Without its parameters, in lower case.
pub(crate) fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a file that begins so may be of this type. Only types that are shown are looked at.
pub(crate) fn fits(content_type: &str, first: &[u8]) -> bool {
    match essence(content_type).as_str() {
        "image/png" => first.starts_with(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" => first.starts_with(b"\xff\xd8\xff"),
        "image/gif" => first.starts_with(b"GIF87a") || first.starts_with(b"GIF89a"),
        "image/webp" => first.starts_with(b"RIFF") && first.get(8..12) == Some(b"WEBP"),
        "application/pdf" => first.starts_with(b"%PDF-"),
        _ => true,
    }
}

/// Whether a picture of this type can be told from what it carries beside itself.
pub(crate) fn has_metadata(content_type: &str) -> bool {
    matches!(essence(content_type).as_str(), "image/jpeg" | "image/png" | "image/webp")
}

/// The picture alone: without places, cameras, authors and comments. `None` when this is no picture whose parts can be told.
pub(crate) fn without_metadata(content_type: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    match essence(content_type).as_str() {
        "image/jpeg" => jpeg(bytes),
        "image/png" => png(bytes),
        "image/webp" => webp(bytes),
        _ => None,
    }
}

/// Segments up to the picture; those of applications and comments go, save the colours (JFIF, ICC, Adobe).
fn jpeg(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut kept = bytes.get(..2).filter(|start| *start == b"\xff\xd8")?.to_vec();
    let mut at = 2;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else { return None };
        // Fill bytes may stand before a marker.
        if marker == 0xff {
            at += 1;
            continue;
        }
        if marker == 0xda {
            kept.extend_from_slice(&bytes[at..]);
            return Some(kept);
        }
        let length = usize::from(u16::from_be_bytes(bytes.get(at + 2..at + 4)?.try_into().ok()?));
        let end = at + 2 + length.max(2);
        let segment = bytes.get(at..end)?;
        let goes = matches!(marker, 0xe1 | 0xe3..=0xed | 0xef | 0xfe)
            || (marker == 0xe2 && !segment[4..].starts_with(b"ICC_PROFILE"));
        if !goes {
            kept.extend_from_slice(segment);
        }
        at = end;
    }
}

/// Chunks that make the picture: critical ones, and those about colours, transparency and animation.
fn png(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut kept = bytes.get(..8).filter(|start| *start == b"\x89PNG\r\n\x1a\n")?.to_vec();
    let mut at = 8;
    loop {
        let length = usize::try_from(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?)).ok()?;
        let name: [u8; 4] = bytes.get(at + 4..at + 8)?.try_into().ok()?;
        let end = at.checked_add(length)?.checked_add(12)?;
        let chunk = bytes.get(at..end)?;
        let critical = name[0].is_ascii_uppercase();
        let needed =
            [*b"tRNS", *b"gAMA", *b"cHRM", *b"sRGB", *b"iCCP", *b"sBIT", *b"bKGD", *b"acTL", *b"fcTL", *b"fdAT"];
        if critical || needed.contains(&name) {
            kept.extend_from_slice(chunk);
        }
        if name == *b"IEND" {
            return Some(kept);
        }
        at = end;
    }
}

/// RIFF chunks without `EXIF` and `XMP `, whose flags are taken back too.
fn webp(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.get(..4)? != b"RIFF" || bytes.get(8..12)? != b"WEBP" {
        return None;
    }
    let mut kept = bytes[..12].to_vec();
    let mut at = 12;
    while at < bytes.len() {
        let name = bytes.get(at..at + 4)?;
        let length = usize::try_from(u32::from_le_bytes(bytes.get(at + 4..at + 8)?.try_into().ok()?)).ok()?;
        let end = at.checked_add(8)?.checked_add(length)?.checked_add(length % 2)?;
        let chunk = bytes.get(at..end.min(bytes.len()))?;
        if name != b"EXIF" && name != b"XMP " {
            let start = kept.len();
            kept.extend_from_slice(chunk);
            if name == b"VP8X" {
                *kept.get_mut(start + 8)? &= !0b0000_1100;
            }
        }
        at = end;
    }
    let size = u32::try_from(kept.len() - 8).ok()?;
    kept[4..8].copy_from_slice(&size.to_le_bytes());
    Some(kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment(marker: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len() + 2).expect("short").to_be_bytes();
        [&[0xff, marker], &length[..], content].concat()
    }

    #[test]
    fn a_jpeg_loses_what_is_not_the_picture() {
        let picture = [&[0xff, 0xda, 0, 2][..], b"pixels\xff\xd9"].concat();
        let jfif = segment(0xe0, b"JFIF\0");
        let all = [
            &b"\xff\xd8"[..],
            &jfif,
            &segment(0xe1, b"Exif\0\0place"),
            &segment(0xe2, b"ICC_PROFILE\0colours"),
            &segment(0xfe, b"comment"),
            &picture,
        ];
        let kept = [&b"\xff\xd8"[..], &jfif, &segment(0xe2, b"ICC_PROFILE\0colours"), &picture].concat();
        assert_eq!(without_metadata("image/jpeg", &all.concat()), Some(kept));
    }

    fn chunk(name: &[u8], content: &[u8]) -> Vec<u8> {
        [&u32::try_from(content.len()).expect("short").to_be_bytes(), name, content, b"crc_"].concat()
    }

    #[test]
    fn a_png_loses_its_texts() {
        let start = b"\x89PNG\r\n\x1a\n";
        let (head, data, end) = (chunk(b"IHDR", b"h"), chunk(b"IDAT", b"d"), chunk(b"IEND", b""));
        let all = [
            &start[..],
            &head,
            &chunk(b"tEXt", b"Author"),
            &chunk(b"eXIf", b"place"),
            &chunk(b"tRNS", b"t"),
            &data,
            &end,
        ];
        let kept = [&start[..], &head, &chunk(b"tRNS", b"t"), &data, &end].concat();
        assert_eq!(without_metadata("image/png; a=b", &all.concat()), Some(kept));
    }

    #[test]
    fn a_webp_loses_exif_and_xmp() {
        let part = |name: &[u8], content: &[u8]| {
            let mut part = [name, &u32::try_from(content.len()).expect("short").to_le_bytes(), content].concat();
            part.resize(part.len() + content.len() % 2, 0);
            part
        };
        let file = |parts: &[Vec<u8>]| {
            let parts = parts.concat();
            [&b"RIFF"[..], &u32::try_from(parts.len() + 4).expect("short").to_le_bytes(), b"WEBP", &parts].concat()
        };
        let flags = |flags: u8| part(b"VP8X", &[flags, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let all = file(&[flags(0b0001_1100), part(b"VP8 ", b"pixels"), part(b"EXIF", b"abc"), part(b"XMP ", b"abcd")]);
        let kept = file(&[flags(0b0001_0000), part(b"VP8 ", b"pixels")]);
        assert_eq!(without_metadata("image/webp", &all), Some(kept));
    }

    #[test]
    fn a_type_is_held_against_the_first_bytes() {
        assert!(fits("image/png", b"\x89PNG\r\n\x1a\n...") && !fits("image/png", b"<html>"));
        assert!(fits("IMAGE/JPEG; q=1", b"\xff\xd8\xff\xe0") && !fits("image/jpeg", b"GIF89a"));
        assert!(fits("image/webp", b"RIFF....WEBPVP8 ") && fits("application/pdf", b"%PDF-1.7"));
        assert!(fits("text/plain", b"<html>") && fits("application/zip", b""));
    }

    proptest! {
        /// Whatever it is given, it neither panics nor makes a file longer.
        #[test]
        fn no_input_breaks_it(kind in 0_usize..3, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (name, start) = [
                ("image/jpeg", &b"\xff\xd8"[..]),
                ("image/png", b"\x89PNG\r\n\x1a\n"),
                ("image/webp", b"RIFF\0\0\0\0WEBP"),
            ][kind];
            let whole = [start, &bytes].concat();
            if let Some(kept) = without_metadata(name, &whole) {
                prop_assert!(kept.len() <= whole.len());
            }
        }
    }
}
