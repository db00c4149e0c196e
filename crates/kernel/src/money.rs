//! Money: integer minor units inside, a decimal number of major units on the wire.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// An ISO 4217 currency.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Currency(&'static str);

/// Active ISO 4217 currencies by the digits of their minor unit. Funds, metals and test codes are left out: nobody
/// sells a plan in them.
const BY_DIGITS: &[(u32, &str)] = &[
    (0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"),
    (
        2,
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC \
         CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD \
         KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO \
         NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL \
         THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG",
    ),
    (3, "BHD IQD JOD KWD LYD OMR TND"),
];

impl Currency {
    pub const fn code(self) -> &'static str {
        self.0
    }

    /// Digits after the decimal point.
    pub fn digits(self) -> u32 {
        BY_DIGITS.iter().find(|(_, codes)| codes.split(' ').any(|code| code == self.0)).map_or(2, |(digits, _)| *digits)
    }
}

impl FromStr for Currency {
    type Err = &'static str;

    /// Accepts any case, since people write `usd`; keeps upper case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        BY_DIGITS
            .iter()
            .flat_map(|(_, codes)| codes.split(' '))
            .find(|code| code.eq_ignore_ascii_case(text))
            .map(Self)
            .ok_or("must be an ISO 4217 currency code such as EUR")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl schemars::JsonSchema for Currency {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Currency".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        if generator.contract().is_deserialize() {
            return schemars::json_schema!({
                "type": "string", "description": "ISO 4217, in any case", "format": "currency-code", "minLength": 3, "maxLength": 3,
                "x-message": "must be an ISO 4217 currency code such as EUR",
            });
        }
        let codes: Vec<&str> = BY_DIGITS.iter().flat_map(|(_, codes)| codes.split(' ')).collect();
        schemars::json_schema!({ "type": "string", "description": "ISO 4217", "enum": codes })
    }
}

/// An amount in one currency. Arithmetic is on minor units, so nothing is ever rounded by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Money {
    pub minor: i64,
    pub currency: Currency,
}

impl Money {
    pub const fn from_minor(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// Reads the wire's decimal of major units. More digits than the currency has is an error, not a rounding.
    pub fn from_major(amount: &serde_json::Number, currency: Currency) -> Result<Self, String> {
        let text = amount.to_string();
        let minor = minor_units(&text, currency.digits())
            .ok_or_else(|| format!("must be an amount with at most {} decimal places", currency.digits()))?;
        Ok(Self { minor, currency })
    }

    /// What `count` units cost at a decimal of major units each, which may be finer than the currency: half of a minor unit
    /// is rounded up, and an amount stops where JSON readers would lose digits.
    pub fn of_units(count: i64, unit: &serde_json::Number, currency: Currency) -> Option<Self> {
        let (value, exponent) = decimal(&unit.to_string())?;
        let exponent = exponent.checked_add(i32::try_from(currency.digits()).ok()?)?;
        let minor = scaled(value.saturating_mul(i128::from(count)), exponent);
        let minor = i64::try_from(minor.clamp(-i128::from(MAX_MINOR), i128::from(MAX_MINOR))).ok()?;
        Some(Self { minor, currency })
    }

    /// A decimal of major units, which may be finer than the currency, in minor units: `0.005` EUR is `0.5`. To twelve places,
    /// which is as fine as payment providers take.
    pub fn unit_in_minor(unit: &serde_json::Number, currency: Currency) -> Option<String> {
        const PLACES: u32 = 12;
        let (value, exponent) = decimal(&unit.to_string())?;
        let exponent = exponent.checked_add(i32::try_from(currency.digits() + PLACES).ok()?)?;
        let (parts, one) = (scaled(value, exponent), 10i128.pow(PLACES));
        let fraction = format!("{:012}", (parts % one).abs());
        let fraction = fraction.trim_end_matches('0');
        Some(if fraction.is_empty() { (parts / one).to_string() } else { format!("{}.{fraction}", parts / one) })
    }

    /// The wire's decimal of major units: 2990 minor units of EUR are `29.9`.
    pub fn to_major(self) -> serde_json::Number {
        let scale = 10i64.pow(self.currency.digits());
        if self.minor % scale == 0 {
            return (self.minor / scale).into();
        }
        // A quotient of two exactly represented integers is the double nearest to the decimal, which prints as it.
        #[expect(
            clippy::cast_precision_loss,
            reason = "MAX_MINOR keeps amounts within the 53 bits a double holds exactly"
        )]
        let major = self.minor as f64 / scale as f64;
        serde_json::Number::from_f64(major).unwrap_or_else(|| 0.into())
    }
}

/// Beyond this a JSON number would lose digits in clients that read it as a double.
const MAX_MINOR: i64 = 1 << 52;

/// Times a power of ten: half of one is rounded up, and what is too large stops at the largest number.
fn scaled(value: i128, exponent: i32) -> i128 {
    match (exponent < 0, 10i128.checked_pow(exponent.unsigned_abs())) {
        (false, Some(scale)) => value.saturating_mul(scale),
        (false, None) if value == 0 => 0,
        (false, None) => i128::MAX,
        (true, Some(scale)) => value.saturating_add(scale / 2).div_euclid(scale),
        (true, None) => 0,
    }
}

/// The digits as written ("29.9", "1e2") and their power of ten, since a float would round.
fn decimal(text: &str) -> Option<(i128, i32)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, mantissa) = mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let value = whole
        .chars()
        .chain(fraction.chars())
        .try_fold(0i128, |value, character| value.checked_mul(10)?.checked_add(i128::from(character.to_digit(10)?)))?;
    let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    Some((if negative { -value } else { value }, exponent))
}

/// Exact decimal arithmetic.
fn minor_units(text: &str, digits: u32) -> Option<i64> {
    let (mut value, exponent) = decimal(text)?;
    let mut shift = exponent.checked_add(i32::try_from(digits).ok()?)?;
    while shift < 0 {
        if value % 10 != 0 {
            return None;
        }
        value /= 10;
        shift += 1;
    }
    while shift > 0 && value != 0 {
        value = value.checked_mul(10)?;
        shift -= 1;
    }
    let minor = i64::try_from(value).ok()?;
    (minor.abs() <= MAX_MINOR).then_some(minor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn currency(code: &str) -> Currency {
        code.parse().expect("known currency")
    }

    fn read(json: &str, code: &str) -> Option<i64> {
        Money::from_major(&serde_json::from_str(json).expect("a number"), currency(code)).ok().map(|money| money.minor)
    }

    #[test]
    fn reads_decimals_exactly() {
        assert_eq!(read("29.9", "EUR"), Some(2990));
        assert_eq!(read("0.07", "EUR"), Some(7));
        assert_eq!(read("1e2", "EUR"), Some(10_000));
        assert_eq!(read("500", "JPY"), Some(500));
        assert_eq!(read("1.234", "KWD"), Some(1234));
        assert_eq!(read("-3", "USD"), Some(-300));
    }

    #[test]
    fn refuses_more_digits_than_the_currency_has() {
        assert_eq!(read("29.999", "EUR"), None);
        assert_eq!(read("0.5", "JPY"), None);
        assert_eq!(read("1e300", "USD"), None);
        assert_eq!(read("1e-300", "USD"), None);
    }

    #[test]
    fn refuses_what_a_double_could_not_hold() {
        assert_eq!(read("4503599627370496", "JPY"), Some(MAX_MINOR));
        assert_eq!(read("4503599627370497", "JPY"), None);
        assert_eq!(read("-4503599627370497", "JPY"), None);
        assert_eq!(read("45035996273704.97", "EUR"), None);
    }

    #[test]
    fn currencies_are_iso_4217_in_any_case() {
        assert_eq!(currency("eur").code(), "EUR");
        assert_eq!("EURO".parse::<Currency>(), Err("must be an ISO 4217 currency code such as EUR"));
        assert_eq!((currency("JPY").digits(), currency("EUR").digits(), currency("BHD").digits()), (0, 2, 3));
    }

    fn units(count: i64, unit: &str, code: &str) -> Option<i64> {
        let unit = serde_json::from_str(unit).expect("a number");
        Money::of_units(count, &unit, currency(code)).map(|money| money.minor)
    }

    #[test]
    fn units_may_be_finer_than_the_currency() {
        assert_eq!(units(3, "0.5", "EUR"), Some(150));
        assert_eq!(units(1_499, "0.001", "EUR"), Some(150));
        assert_eq!([units(4, "0.001", "EUR"), units(5, "0.001", "EUR")], [Some(0), Some(1)]);
        assert_eq!(units(7, "2", "JPY"), Some(14));
        assert_eq!(units(i64::MAX, "1e300", "EUR"), Some(MAX_MINOR));
        assert_eq!(units(i64::MAX, "1e-300", "EUR"), Some(0));
        assert_eq!(units(0, "1e300", "EUR"), Some(0));
    }

    #[test]
    fn a_unit_is_written_in_minor_units() {
        for (unit, code, expected) in [
            ("0.005", "EUR", "0.5"),
            ("1", "EUR", "100"),
            ("0.01", "EUR", "1"),
            ("12.3456", "EUR", "1234.56"),
            ("7", "JPY", "7"),
            ("0", "EUR", "0"),
            // As JSON writes what is small.
            ("0.000005", "EUR", "0.0005"),
            ("1e-7", "EUR", "0.00001"),
            ("1.5e3", "EUR", "150000"),
            ("1e-300", "EUR", "0"),
            ("0.00000000000001", "EUR", "0.000000000001"),
        ] {
            let unit = serde_json::from_str(unit).expect("a number");
            assert_eq!(Money::unit_in_minor(&unit, currency(code)).as_deref(), Some(expected), "{unit}");
        }
    }

    proptest! {
        /// Whoever reads what is written comes to the same sum.
        #[test]
        fn a_unit_costs_the_same_in_minor_units(digits in 0i64..1_000_000_000, places in 0u32..12, count in 0i64..1_000_000) {
            let unit: serde_json::Number = format!("{digits}e-{places}").parse().expect("a number");
            let minor: serde_json::Number =
                Money::unit_in_minor(&unit, currency("EUR")).expect("a decimal").parse().expect("a number");
            let once = Money::of_units(count, &minor, currency("JPY")).map(|money| money.minor);
            prop_assert_eq!(Money::of_units(count, &unit, currency("EUR")).map(|money| money.minor), once);
        }

        #[test]
        fn whole_minor_units_are_multiplied_exactly(count in 0i64..1_000_000, minor in 0i64..1_000_000) {
            let unit = Money::from_minor(minor, currency("EUR")).to_major();
            prop_assert_eq!(units(count, &unit.to_string(), "EUR"), Some(count * minor));
        }

        #[test]
        fn what_goes_out_comes_back_the_same(minor in -MAX_MINOR..=MAX_MINOR, code in prop::sample::select(vec!["JPY", "EUR", "KWD"])) {
            let money = Money::from_minor(minor, currency(code));
            prop_assert_eq!(Money::from_major(&money.to_major(), money.currency), Ok(money));
        }
    }
}
