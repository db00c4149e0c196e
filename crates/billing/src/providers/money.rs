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

    /// Twice the amount, in millionths of a hundredth of a cent: whole numbers all the way.
    fn twice_exact(cents: i64, millionths: i64) -> i128 {
        2 * i128::from(cents) * i128::from(millionths)
    }

    const CENT: i128 = 100 * 1_000_000;

    /// As people write percentages: `7.7`, `19`, `8.875`.
    fn percentages() -> impl Strategy<Value = (i64, f64)> {
        let millionths = prop_oneof![
            (0i64..=100).prop_map(|whole| whole * 1_000_000),
            (0i64..=10_000).prop_map(|hundredths| hundredths * 10_000),
            0i64..=100_000_000,
        ];
        millionths.prop_map(|millionths| {
            let written = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
            (millionths, written.parse().expect("a number"))
        })
    }

    proptest! {
        /// No other whole number of cents is as near, and of two that are the larger one is taken.
        #[test]
        fn a_tax_is_the_nearest_cent(cents in prop_oneof![0i64..100_000, 0i64..(1 << 52)], (millionths, percentage) in percentages()) {
            let bill = Bill::new(euros(cents), Some(percentage));
            let tax = bill.tax.expect("one").minor;
            let beyond = twice_exact(cents, millionths) - 2 * i128::from(tax) * CENT;
            prop_assert!((-CENT..CENT).contains(&beyond), "{tax} of {cents} at {percentage}");
            prop_assert!((0..=cents).contains(&tax));
            prop_assert_eq!(bill.total().minor, cents + tax);
        }

        #[test]
        fn more_is_never_taxed_less(cents in 0i64..1_000_000, more in 0i64..1_000, (_, low) in percentages(), (_, high) in percentages()) {
            prop_assert!(share(cents, low) <= share(cents + more, low));
            prop_assert!(share(cents, low.min(high)) <= share(cents, low.max(high)));
        }
    }
}
