//! How many rows a step of background work may write, by what the last ones took: SQLite has one writer, and whoever else
//! waits for it must not notice.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

/// The usual limit: a step that took longer writes fewer rows next time.
pub const LONGEST_STEP: Duration = Duration::from_millis(4);

/// Halves after a step that took long, and doubles after a quick one.
#[derive(Debug)]
pub struct Pace {
    least: i64,
    most: i64,
    longest: Duration,
    rows: AtomicI64,
}

impl Pace {
    pub fn new(first: i64, bounds: (i64, i64)) -> Self {
        Self::within(LONGEST_STEP, first, bounds)
    }

    /// For steps that may take up to `longest`.
    pub fn within(longest: Duration, first: i64, (least, most): (i64, i64)) -> Self {
        Self { least, most, longest, rows: AtomicI64::new(first) }
    }

    /// How many the next step may write.
    pub fn rows(&self) -> i64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// After a step; a quick one tells something only if it left some work undone.
    pub fn took(&self, took: Duration, is_more: bool) {
        let rows = self.rows();
        let next = match took {
            took if took > self.longest => rows / 2,
            took if took < self.longest / 2 && is_more => rows * 2,
            _ => rows,
        };
        self.rows.store(next.clamp(self.least, self.most), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_steps_shrink_and_quick_ones_grow_within_bounds() {
        let after = |first: i64, took: u64, is_more: bool| {
            let pace = Pace::within(Duration::from_millis(40), first, (20, 500));
            pace.took(Duration::from_millis(took), is_more);
            pace.rows()
        };
        assert_eq!((after(400, 90, true), after(400, 30, true), after(200, 10, true)), (200, 400, 400));
        assert_eq!((after(400, 10, true), after(20, 900, true)), (500, 20));
        assert_eq!((after(200, 10, false), after(200, 90, false)), (200, 100));
    }
}
