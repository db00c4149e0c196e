//! Events of a realistic mix, the same in every run.

use std::ops::Range;

use serde_json::{Value, json};

/// The name of most events.
pub const MAIN_NAME: &str = "order.placed";
const NAMES: [&str; 5] = [MAIN_NAME, "page.viewed", "signup", "invoice.paid", "file.uploaded"];
/// Of a hundred events.
const SHARES: [u64; 5] = [60, 25, 5, 5, 5];
const PLANS: [&str; 4] = ["free", "pro", "team", "enterprise"];
/// Somebody who does much.
pub const USER: &str = "user_0";
pub const FROM: &str = "2026-01-01T00:00:00Z";
pub const TO: &str = "2026-01-31T23:59:59Z";
/// 2026-01-01T00:00:00Z, and the time that events are spread over, in milliseconds.
const START: i64 = 1_767_225_600_000;
const SPAN: i64 = 30 * 86_400_000;

struct Dice(u64);

impl Dice {
    fn new(seed: usize) -> Self {
        Self(seed as u64 ^ 0x9E37_79B9_7F4A_7C15)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// About how many events have the main name.
pub fn share_of_main_name(events: usize) -> f64 {
    events as f64 * SHARES[0] as f64 / 100.0
}

/// A million of them pass once through the month.
struct Sample {
    number: usize,
    name: &'static str,
    at: kernel::Timestamp,
    parameters: Value,
}

impl Sample {
    /// Roughly in the order of time.
    fn roll(dice: &mut Dice, number: usize) -> Self {
        let mut point = dice.roll(100);
        let mut name = NAMES[0];
        for (candidate, share) in NAMES.iter().zip(SHARES) {
            name = candidate;
            if point < share {
                break;
            }
            point -= share;
        }
        let after = (number as i64 * 2_600 + dice.roll(60_000).cast_signed()) % SPAN;
        // A few do much, many do little.
        let user = dice.roll(100_000) * dice.roll(100_000) / 200_000;
        let parameters = json!({
            "userId": format!("user_{user}"),
            "orderId": number,
            "plan": PLANS[dice.roll(4) as usize],
            "amount": dice.roll(100_000) as f64 / 100.0,
            "country": format!("c{}", dice.roll(20)),
            "mobile": dice.roll(3) == 0,
        });
        Self { number, name, at: kernel::Timestamp::from_micros((START + after) * 1_000), parameters }
    }

    fn json(self, app: &str) -> Value {
        json!({
            "appId": app, "eventName": self.name, "timestamp": self.at, "parameters": self.parameters,
            "ingestId": format!("sample-{}", self.number),
        })
    }
}

/// Events by number, as JSON.
pub fn events(app: &str, numbers: Range<usize>) -> Vec<Value> {
    let mut dice = Dice::new(numbers.start);
    numbers.map(|number| Sample::roll(&mut dice, number).json(app)).collect()
}
