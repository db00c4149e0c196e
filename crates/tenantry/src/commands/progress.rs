//! A bar on a terminal, for what takes a while.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::atomic::{AtomicU64, Ordering},
};

use super::Output;

const WIDTH: u64 = 30;

/// Draws only where somebody watches.
pub struct ProgressBar {
    what: &'static str,
    of: u64,
    is_shown: bool,
    /// In hundredths; `NOTHING` before the first.
    drawn: AtomicU64,
}

const NOTHING: u64 = u64::MAX;

impl ProgressBar {
    pub fn new(what: &'static str, of: u64, output: Output) -> Self {
        let is_shown = !output.json && std::io::stderr().is_terminal();
        Self { what, of, is_shown, drawn: AtomicU64::new(NOTHING) }
    }

    pub fn show(&self, done: u64) {
        let hundredths = hundredths(done, self.of);
        if self.is_shown && self.drawn.swap(hundredths, Ordering::Relaxed) != hundredths {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[K{}", line(self.what, hundredths)).and_then(|()| out.flush());
        }
    }

    /// Leaves the line to what is printed next.
    pub fn clear(&self) {
        if self.drawn.load(Ordering::Relaxed) != NOTHING {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[K").and_then(|()| out.flush());
        }
    }
}

fn hundredths(done: u64, of: u64) -> u64 {
    done.min(of).saturating_mul(100).checked_div(of).unwrap_or(100)
}

fn line(what: &str, hundredths: u64) -> String {
    let full = usize::try_from(hundredths * WIDTH / 100).unwrap_or_default();
    let width = usize::try_from(WIDTH).unwrap_or_default();
    format!("{what:<10} [{:<width$}] {hundredths:>3} %", "#".repeat(full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_with_what_is_done() {
        let shown = |done, of| line("Importing", hundredths(done, of));
        assert_eq!(shown(0, 7), format!("Importing  [{}]   0 %", " ".repeat(30)));
        assert_eq!(shown(5, 10), format!("Importing  [{}{}]  50 %", "#".repeat(15), " ".repeat(15)));
        let full = format!("Importing  [{}] 100 %", "#".repeat(30));
        assert_eq!([shown(9, 9), shown(12, 9), shown(0, 0)], [full.clone(), full.clone(), full]);
    }
}
