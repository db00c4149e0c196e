//! Languages by their two letters (ISO 639-1), as mails and hosted pages are written in.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// An ISO 639-1 language. Lower case only, so that one language has exactly one spelling.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Locale(&'static str);

const CODES: &str = "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz \
                     ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii \
                     ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi \
                     mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw \
                     sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk \
                     ur uz ve vi vo wa wo xh yi yo za zh zu";

const UNKNOWN: &str = "must be an ISO 639-1 language code such as en";

impl Locale {
    pub const ENGLISH: Self = Self("en");

    pub const fn code(self) -> &'static str {
        self.0
    }

    fn all() -> impl Iterator<Item = &'static str> {
        CODES.split(' ')
    }
}

impl FromStr for Locale {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::all().find(|code| *code == text).map(Self).ok_or(UNKNOWN)
    }
}

impl fmt::Display for Locale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Locale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for Locale {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Locale {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl schemars::JsonSchema for Locale {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Locale".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let codes: Vec<&str> = Self::all().collect();
        schemars::json_schema!({ "type": "string", "description": "ISO 639-1", "enum": codes, "x-message": UNKNOWN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_every_language_once() {
        let codes: std::collections::BTreeSet<&str> = Locale::all().collect();
        assert_eq!((codes.len(), Locale::all().count()), (183, 183));
        assert!(codes.iter().all(|code| code.len() == 2));
    }

    #[test]
    fn other_spellings_are_refused() {
        assert_eq!("de".parse(), Ok(Locale("de")));
        for other in ["", "EN", "en-US", "deu", "xx", "e"] {
            assert!(other.parse::<Locale>().is_err(), "{other}");
        }
    }
}
