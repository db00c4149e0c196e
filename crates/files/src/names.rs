//! Names that callers give to files: kept for the person who saves one, and never used as a path or a header as they are.

use std::fmt::Write as _;

/// The longest that any file system keeps.
const LONGEST: usize = 200;

/// What is left of a name: its last part, one line, without characters that mean something to a shell or a file system.
pub(crate) fn cleaned(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept: String = last
        .chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .filter(|letter| !letter.is_control() && !is_direction(*letter) && !"\"<>:|?*".contains(*letter))
        .take(LONGEST)
        .collect();
    let kept = kept.trim().trim_start_matches('.').trim();
    if kept.is_empty() { "file".to_owned() } else { kept.to_owned() }
}

/// Marks that turn text around could make `gpj.exe` look like a picture.
const fn is_direction(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `Content-Disposition` in both forms of RFC 6266: ASCII for old programs, UTF-8 for all others.
pub(crate) fn disposition(kind: &str, name: &str) -> String {
    let plain: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    let mut full = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => full.push(char::from(byte)),
            _ => drop(write!(full, "%{byte:02X}")),
        }
    }
    format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{full}")
}

fn is_plain(letter: char) -> bool {
    (letter.is_ascii_graphic() || letter == ' ') && !"\"\\%".contains(letter)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_no_path() {
        for (given, kept) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("C:\\temp\\a.txt", "a.txt"),
            ("..", "file"),
            ("", "file"),
            ("a\r\nSet-Cookie: x", "a  Set-Cookie x"),
            (".htaccess", "htaccess"),
            ("gpj\u{202e}.exe", "gpj.exe"),
            ("Übersicht \"2026\".pdf", "Übersicht 2026.pdf"),
        ] {
            assert_eq!(cleaned(given), kept, "{given:?}");
        }
        assert_eq!(cleaned(&"x".repeat(10_000)).len(), LONGEST);
    }

    #[test]
    fn a_header_has_both_forms() {
        assert_eq!(
            disposition("attachment", "Über 100%.pdf"),
            "attachment; filename=\"_ber 100_.pdf\"; filename*=UTF-8''%C3%9Cber%20100%25.pdf"
        );
    }

    proptest! {
        #[test]
        fn whatever_the_name_the_header_is_one(name in ".{0,300}") {
            let cleaned = cleaned(&name);
            prop_assert!(!cleaned.contains(['/', '\\', '\0', '\n', '\r']) && !cleaned.is_empty());
            let header = disposition("inline", &cleaned);
            prop_assert!(header.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            prop_assert_eq!(header.matches('"').count(), 2);
        }
    }
}
