//! Countries by their ISO 3166-1 alpha-2 code.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// An officially assigned ISO 3166-1 alpha-2 code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Country(&'static str);

const CODES: &str = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ \
     CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR \
     GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP \
     KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT \
     MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW \
     SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG \
     UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW";

impl Country {
    pub const fn code(self) -> &'static str {
        self.0
    }
}

impl FromStr for Country {
    type Err = &'static str;

    /// Accepts any case, since people write `de`; keeps upper case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        CODES
            .split(' ')
            .find(|code| code.eq_ignore_ascii_case(text))
            .map(Self)
            .ok_or("must be an ISO 3166-1 alpha-2 country code such as DE")
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for Country {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Country {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl schemars::JsonSchema for Country {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Country".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        if generator.contract().is_deserialize() {
            return schemars::json_schema!({
                "type": "string", "description": "ISO 3166-1 alpha-2, in any case", "format": "country-code", "minLength": 2, "maxLength": 2,
                "x-message": "must be an ISO 3166-1 alpha-2 country code such as DE",
            });
        }
        let codes: Vec<&str> = CODES.split(' ').collect();
        schemars::json_schema!({ "type": "string", "description": "ISO 3166-1 alpha-2", "enum": codes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_249_in_order_and_in_any_case() {
        let codes: Vec<&str> = CODES.split(' ').collect();
        assert_eq!(codes.len(), 249);
        assert!(codes.is_sorted() && codes.iter().all(|code| code.len() == 2));
        assert_eq!("de".parse::<Country>().map(Country::code), Ok("DE"));
        for unknown in ["", "D", "DEU", "XX", "UK", "EU"] {
            assert!(unknown.parse::<Country>().is_err(), "{unknown}");
        }
    }
}
