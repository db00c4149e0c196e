//! Texts with a rule. A type is declared by its JSON schema, and what it accepts is judged by that same schema, so the
//! document and the server cannot disagree. [`text_types!`] declares more of them where a room needs its own.

mod phone;
mod rules;
mod urls;

use std::cell::Cell;

pub use phone::e164;
pub use rules::{MAX_BYTES, MESSAGE, TextRules};
pub use urls::{is_host_name, is_origin, is_redirect_uri, is_web_url};

/// Texts have at most this many characters and bytes unless their type says otherwise.
pub const MAX_TEXT: usize = 64 * 1024;
/// The same for texts in a query, which have to fit into a request's head.
pub const MAX_QUERY_TEXT: usize = 8 * 1024;
/// Templates, style sheets: texts that are content have at most this many characters and bytes.
pub const MAX_CONTENT: usize = 512 * 1024;
/// Names of people, workspaces, apps, roles, plans, flags and tokens have at most this many characters.
pub const MAX_NAME: usize = 200;
/// Lists have at most this many entries unless their type says otherwise.
pub const MAX_LIST: usize = 1_000;
/// At least one character that can be seen.
pub const NOT_BLANK: &str = r"[^\s\uFEFF]";

/// What a key looks like.
pub const KEY_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$";
/// What to say of a text that is not a key.
pub const NO_KEY: &str =
    "must be 1 to 128 letters, digits, dots, colons, hyphens or underscores, a letter or digit first";

/// Declares text types: `Name(normal_form) { JSON schema };`. The normal form is applied to what the schema accepts.
#[macro_export]
macro_rules! text_types {
    ($($(#[$meta:meta])* $name:ident $(($normal:expr))? { $($schema:tt)* })*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            fn schema() -> $crate::schemars::Schema {
                $crate::schemars::json_schema!({ "type": "string", $($schema)* })
            }

            /// What is wrong with the text, in words that follow its field's name.
            pub fn problem(text: &str) -> Option<String> {
                static RULES: std::sync::LazyLock<$crate::text::TextRules> =
                    std::sync::LazyLock::new(|| $crate::text::TextRules::of($name::schema().as_value()));
                RULES.problem(text)
            }

            /// A text of the program itself.
            ///
            /// # Panics
            /// When it breaks the rule.
            pub fn from_static(text: &'static str) -> Self {
                text.parse().unwrap_or_else(|problem| panic!("{text} {problem}"))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match Self::problem(text) {
                    Some(problem) => Err(problem),
                    None => Ok(Self($crate::text_types!(@normal text $($normal)?))),
                }
            }
        }

        impl<'de> $crate::text::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::text::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                match $crate::text::is_refused_already() {
                    true => Ok(Self(text.into_owned())),
                    false => text.parse().map_err($crate::text::serde::de::Error::custom),
                }
            }
        }

        impl $crate::text::serde::Serialize for $name {
            fn serialize<S: $crate::text::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl $crate::schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut $crate::schemars::SchemaGenerator) -> $crate::schemars::Schema {
                Self::schema()
            }
        }

        impl std::ops::Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )* };
    (@normal $text:ident) => { $text.to_owned() };
    (@normal $text:ident $normal:expr) => { $normal($text) };
}

thread_local! {
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Reads what was found wrong and will be refused whatever comes of it, so that rules across its members can be told
/// too: within `read`, text types take every text.
pub fn read_refused<T>(read: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            REFUSED.set(self.0);
        }
    }
    let _restore = Restore(REFUSED.replace(true));
    read()
}

#[doc(hidden)]
pub fn is_refused_already() -> bool {
    REFUSED.get()
}

/// Used by [`text_types!`], so that callers need no dependency of their own.
#[doc(hidden)]
pub use ::serde;

/// What can stand in a subject or a header: words with one space between them.
pub fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn trimmed(text: &str) -> String {
    text.trim().to_owned()
}

text_types! {
    /// How programs name a role, a privilege or a plan. Without spaces, since privileges are listed between spaces in
    /// tokens.
    Key {
        "pattern": KEY_PATTERN,
        "x-message": NO_KEY,
    }

    /// What people call something: one line, kept without spaces around it.
    Name(trimmed) {
        "minLength": 1,
        "maxLength": MAX_NAME,
        "pattern": r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*[^\s\x00-\x1f\x7f-\x9f\uFEFF][^\x00-\x1f\x7f-\x9f\u2028\u2029]*$",
        "x-message": "must be one line without control characters",
    }

    /// A [`Name`] that may be empty: of people who do not give theirs.
    #[derive(Default)]
    OptionalName(trimmed) {
        "maxLength": MAX_NAME,
        "pattern": r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$",
        "x-message": "must be one line without control characters",
    }

    /// What a metric, an event, a parameter or an entitlement is called.
    Label {
        "minLength": 1,
        "maxLength": 128,
        "pattern": r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f\uFEFF][^\x00-\x1f\x7f-\x9f]*$",
        "x-message": "must not contain control characters",
    }

    /// Any text, which may be empty.
    #[derive(Default)]
    Text {
        "maxLength": MAX_TEXT,
        "x-maxBytes": MAX_TEXT,
    }

    /// Any text that says something.
    Words {
        "minLength": 1,
        "maxLength": MAX_TEXT,
        "x-maxBytes": MAX_TEXT,
        "pattern": NOT_BLANK,
        "x-message": "must not be empty",
    }

    /// A template or a style sheet.
    Content {
        "minLength": 1,
        "maxLength": MAX_CONTENT,
        "x-maxBytes": MAX_CONTENT,
        "pattern": NOT_BLANK,
        "x-message": "must not be empty",
    }

    /// A password as somebody types it; wrap it in a [`Secret`](crate::Secret).
    Password {
        "minLength": 1,
        "maxLength": 512,
        "x-maxBytes": 512,
    }

    /// An email address; see [`crate::is_email`].
    Email {
        "format": "email",
        "maxLength": 254,
        "x-message": "must be an email address",
    }

    /// An absolute `http` or `https` URL.
    WebUrl {
        "format": "web-url",
        "maxLength": 2_048,
        "x-message": "must be an absolute http or https URL",
    }

    /// Where a login may lead back to: a web page without a user name or a fragment, or a native app's own scheme.
    RedirectUri {
        "format": "redirect-uri",
        "maxLength": 2_048,
        "x-message": "must be an absolute URI without a user name or a fragment",
    }

    /// Scheme, host and port, as a browser sends it.
    Origin {
        "format": "web-origin",
        "maxLength": 2_048,
        "x-message": "must be an origin such as https://app.example",
    }

    /// Letters, digits and hyphens in labels between dots, as in DNS.
    HostName {
        "format": "hostname",
        "maxLength": 253,
        "x-message": "must be a host name such as app.example.com",
    }

    /// A phone number that exists, typed in any international form and kept in E.164.
    Phone(|text| e164(text).unwrap_or_default()) {
        "format": "phone-number",
        "maxLength": 40,
        "x-message": "must be a phone number in international form: +491701234567",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(problem: fn(&str) -> Option<String>, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(problem(text), None, "{text:?}");
        }
        for text in bad {
            assert!(problem(text).is_some(), "{text:?}");
        }
    }

    #[test]
    fn keys_are_words_for_programs() {
        let (longest, beyond) = ("k".repeat(128), "k".repeat(129));
        let good = ["OWNER", "reports:read", "1.a-b_c", &longest];
        fits(Key::problem, &good, &["", "a b", "_a", "ä", "a\n", &beyond]);
    }

    #[test]
    fn names_are_one_line_that_says_something() {
        let (longest, beyond) = ("é".repeat(200), "é".repeat(201));
        let good = ["A", "Ada & Söhne", " a ", "名前", &longest];
        fits(Name::problem, &good, &["", " ", "\u{feff}", "a\nb", "a\u{2028}b", "\u{7}", "a\u{0}", &beyond]);
        assert_eq!(Name::problem(&beyond).as_deref(), Some("must be at most 200 characters"));
        assert_eq!(Name::problem(" ").as_deref(), Some("must not be empty"));
        assert_eq!(" Ada ".parse::<Name>().map(String::from), Ok("Ada".to_owned()));
        fits(OptionalName::problem, &["", " ", "Ada", &longest], &["a\nb", &beyond]);
    }

    #[test]
    fn limits_count_characters_and_bytes() {
        let (longest, beyond, wide) = ("a".repeat(MAX_TEXT), "a".repeat(MAX_TEXT + 1), "é".repeat(MAX_TEXT / 2 + 1));
        fits(Text::problem, &["", &longest], &[&beyond, &wide, "\0"]);
        fits(Words::problem, &["a\nb", &longest], &["", " \n", &beyond, &wide]);
        assert_eq!(Text::problem(&wide).as_deref(), Some("must be at most 65536 bytes"));
    }

    #[test]
    fn a_least_length_counts_characters_too() {
        let rules = TextRules::of(&serde_json::json!({ "minLength": 8 }));
        assert_eq!(rules.problem(&"é".repeat(8)), None);
        assert_eq!(rules.problem(&"é".repeat(7)).as_deref(), Some("must be at least 8 characters"));
        assert_eq!(rules.problem("🔑🔑").as_deref(), Some("must be at least 8 characters"));
    }

    #[test]
    fn a_line_has_no_breaks() {
        assert_eq!(one_line("  Ada\r\nBcc:\u{7} x\u{2028}y "), "Ada Bcc: x y");
    }

    #[test]
    fn phone_numbers_take_their_one_form() {
        assert_eq!("+49 170 1234567".parse::<Phone>().map(String::from), Ok("+491701234567".to_owned()));
        fits(Phone::problem, &["+4930123456"], &["", "030", "+0301234567", "+123456", "4930123456"]);
    }
}
