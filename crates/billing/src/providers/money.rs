//! What is charged: the price, and the tax of the customer's country. Pure.

use kernel::Money;

/// A charge in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bill {
    pub net: Money,
    pub tax: Option<Money>,
}

impl Bill {
    pub fn new(net: Money, tax_percentage: Option<f64>) -> Self {
        let tax = tax_percentage.map(|percentage| Money::from_minor(share(net.minor, percentage), net.currency));
        Self { net, tax }
    }

    pub fn total(self) -> Money {
        let tax = self.tax.map_or(0, |tax| tax.minor);
        Money::from_minor(self.net.minor.saturating_add(tax), self.net.currency)
    }
}

/// An amount for people: `29.9 EUR`.
pub fn written(amount: Money) -> String {
    format!("{} {}", amount.to_major(), amount.currency)
}

/// In whole minor units, half of one rounded up. Percentages are taken to a millionth, so that the sum is exact.
#[expect(clippy::cast_possible_truncation, reason = "a percentage lies between 0 and 100")]
fn share(amount: i64, percentage: f64) -> i64 {
    const MILLION: i128 = 1_000_000;
    let millionths = (percentage * 1_000_000.0).round() as i64;
    let scaled = i128::from(amount) * i128::from(millionths);
    let whole = 100 * MILLION;
    i64::try_from((scaled + whole / 2) / whole).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn euros(cents: i64) -> Money {
        Money::from_minor(cents, "EUR".parse().expect("a currency"))
    }

    #[test]
    fn half_a_cent_is_rounded_up() {
        assert_eq!(share(2_900, 19.0), 551);
        assert_eq!(share(50, 19.0), 10);
        assert_eq!(share(10, 5.0), 1);
        assert_eq!(share(9, 5.0), 0);
        assert_eq!(share(1_000, 7.7), 77);
        assert_eq!(Bill::new(euros(2_900), Some(19.0)).total(), euros(3_451));
        assert_eq!(Bill::new(euros(2_900), None).total(), euros(2_900));
    }

    proptest! {
        #[test]
        fn a_tax_is_never_negative_nor_more_than_the_amount(cents in 0i64..(1 << 52), percentage in 0.0f64..=100.0) {
            let bill = Bill::new(euros(cents), Some(percentage));
            let tax = bill.tax.expect("one").minor;
            prop_assert!((0..=cents).contains(&tax));
            prop_assert_eq!(bill.total().minor, cents + tax);
        }
    }
}
