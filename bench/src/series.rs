//! The figures of one candidate over all rounds: medians with their spread, and ratios taken round by round.

use std::time::Duration;

use serde::Serialize;

/// One turn of one candidate.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    pub per_second: f64,
    /// Microseconds of processor time per call, of whoever serves it.
    pub cpu_micros: f64,
    /// The same of the database's processes, where they are told apart.
    pub database_micros: Option<f64>,
    pub p50_millis: f64,
    pub p99_millis: f64,
    pub worst_millis: f64,
    /// Calls that shared a commit or a statement, where that was counted.
    pub shared_by: Option<f64>,
}

impl Round {
    pub fn new(calls: u64, elapsed: Duration, cpu: Duration, mut latencies: Vec<Duration>) -> Self {
        latencies.sort_unstable();
        let millis = |rank: f64| percentile(&latencies, rank).as_secs_f64() * 1e3;
        Self {
            per_second: calls as f64 / elapsed.as_secs_f64(),
            cpu_micros: cpu.as_secs_f64() * 1e6 / calls.max(1) as f64,
            database_micros: None,
            p50_millis: millis(0.5),
            p99_millis: millis(0.99),
            worst_millis: millis(1.0),
            shared_by: None,
        }
    }
}

/// The nearest rank; zero when there is nothing.
fn percentile(sorted: &[Duration], rank: f64) -> Duration {
    let index = (sorted.len() as f64 * rank).ceil() as usize;
    sorted.get(index.saturating_sub(1)).copied().unwrap_or_default()
}

/// A median and what lies at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Spread {
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_unstable_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (figures.first(), figures.last()) else {
            return Self { min: 0.0, median: 0.0, max: 0.0 };
        };
        let middle = figures.len() / 2;
        let median =
            if figures.len() % 2 == 1 { figures[middle] } else { f64::midpoint(figures[middle - 1], figures[middle]) };
        Self { min, median, max }
    }
}

/// A candidate and its rounds, in order.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    pub name: String,
    pub callers: usize,
    pub rounds: Vec<Round>,
}

impl Series {
    pub fn new(name: impl Into<String>, callers: usize) -> Self {
        Self { name: name.into(), callers, rounds: Vec::new() }
    }

    pub fn spread(&self, figure: impl Fn(&Round) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(figure))
    }

    pub fn per_second(&self) -> Spread {
        self.spread(|round| round.per_second)
    }

    pub fn cpu_micros(&self) -> Spread {
        self.spread(|round| round.cpu_micros)
    }

    pub fn database_micros(&self) -> Option<Spread> {
        let counted: Vec<f64> = self.rounds.iter().filter_map(|round| round.database_micros).collect();
        (!counted.is_empty()).then(|| Spread::of(counted))
    }

    pub fn shared_by(&self) -> Option<Spread> {
        let counted: Vec<f64> = self.rounds.iter().filter_map(|round| round.shared_by).collect();
        (!counted.is_empty()).then(|| Spread::of(counted))
    }

    /// Over all rounds: a stall in one of them is not averaged away.
    pub fn worst_millis(&self) -> f64 {
        self.spread(|round| round.worst_millis).max
    }

    /// Round by round, since neighbours in time share the machine's mood.
    pub fn ratio(&self, baseline: &Self, figure: impl Fn(&Round) -> f64) -> Spread {
        let pairs = self.rounds.iter().zip(&baseline.rounds);
        Spread::of(pairs.map(|(own, other)| figure(own) / figure(other).max(f64::MIN_POSITIVE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_counts_per_second_and_per_call() {
        let latencies = (1..=100).rev().map(Duration::from_millis).collect();
        let round = Round::new(200, Duration::from_secs(2), Duration::from_millis(10), latencies);
        assert_eq!((round.per_second, round.cpu_micros), (100.0, 50.0));
        assert_eq!((round.p50_millis, round.p99_millis, round.worst_millis), (50.0, 99.0, 100.0));
    }

    #[test]
    fn a_round_without_calls_has_figures_too() {
        let round = Round::new(0, Duration::from_secs(1), Duration::ZERO, Vec::new());
        assert_eq!((round.per_second, round.cpu_micros, round.worst_millis), (0.0, 0.0, 0.0));
    }

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), Spread { min: 1.0, median: 2.5, max: 4.0 });
    }

    #[test]
    fn ratios_pair_the_rounds() {
        let series = |figures: [f64; 3]| {
            let rounds =
                figures.map(|seconds| Round::new(1, Duration::from_secs(1), Duration::from_secs_f64(seconds), vec![]));
            Series { rounds: rounds.to_vec(), ..Series::new("x", 1) }
        };
        let ratio = series([2.0, 6.0, 8.0]).ratio(&series([1.0, 2.0, 2.0]), |round| round.cpu_micros);
        assert_eq!((ratio.min, ratio.median, ratio.max), (2.0, 3.0, 4.0));
    }
}
