//! Email addresses: which ones are accepted, and how two of them are compared.

/// The addresses that mail servers on the internet really take: dot-separated ASCII words, an `@`, a host name. Quoted
/// words, comments and address literals are refused: nobody signs up with them, and they hide what is written.
pub const EMAIL_PATTERN: &str = r"^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$";

const LONGEST: usize = 254;
const LONGEST_LOCAL: usize = 64;

pub fn is_email(text: &str) -> bool {
    let Some((local, host)) = text.rsplit_once('@') else { return false };
    text.len() <= LONGEST
        && local.len() <= LONGEST_LOCAL
        && local.split('.').all(|word| !word.is_empty() && word.bytes().all(is_word_byte))
        && host.split('.').all(is_label)
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte)
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// What two spellings of one address have in common: they differ in case only.
pub fn email_key(email: &str) -> String {
    email.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_addresses_are_accepted() {
        for good in ["ada@example.com", "a.b+c@x-y.example", "o'hara@localhost", "A@1.test", "{x}@example.com"] {
            assert!(is_email(good), "{good}");
        }
    }

    #[test]
    fn what_could_smuggle_something_is_refused() {
        let long_local = format!("{}@example.com", "a".repeat(65));
        let long = format!("a@{}", ["a"; 200].join("."));
        for bad in [
            "",
            "@",
            "a@",
            "@b",
            "a b@c",
            "a@b c",
            "a@b@c",
            ".a@b",
            "a.@b",
            "a..b@c",
            "a@-b",
            "a@b-",
            "a@b..c",
            "a@b.",
            "\"a b\"@c",
            "a@[127.0.0.1]",
            "Ada <a@b>",
            "a@b\r\nBcc: c@d",
            "a,b@c",
            "ä@b",
            "a@ä",
            &long_local,
            &long,
        ] {
            assert!(!is_email(bad), "{bad}");
        }
    }

    #[test]
    fn case_does_not_count() {
        assert_eq!(email_key("Ada@Example.COM"), email_key("ada@example.com"));
    }
}
