//! What is printed: tables that line up on a terminal and are Markdown at the same time, and the aims.

use std::{fmt, path::Path};

use serde_json::{Value, json};

use crate::{
    Result,
    series::{Series, Spread},
};

/// Rows of text under headings. The first column is a name, the others are figures.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const N: usize>(headings: [&str; N]) -> Self {
        Self { rows: vec![headings.map(str::to_owned).to_vec()] }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for (number, row) in self.rows.iter().enumerate() {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 { write!(f, "| {cell:width$} ")? } else { write!(f, "| {cell:>width$} ")? }
            }
            writeln!(f, "|")?;
            if number == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let rule = "-".repeat(width + 1);
                    write!(f, "|{rule}{}", if column == 0 { '-' } else { ':' })?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// The figures every candidate has, with `shared` as the heading of what was counted besides.
pub fn table(series: &[Series], shared: Option<&str>, compared: &[Vec<String>], comparison: &str) -> Table {
    let mut headings =
        ["candidate", "callers", "per s (min–max)", "p50 ms", "p99 ms", "worst ms", "CPU µs each (min–max)"]
            .map(str::to_owned)
            .to_vec();
    let databases = series.iter().any(|one| one.database_micros().is_some());
    headings.extend(databases.then(|| "database's CPU µs each (min–max)".to_owned()));
    headings.extend(shared.map(str::to_owned));
    headings.push(comparison.to_owned());
    let mut rows = vec![headings];
    for (one, compared) in series.iter().zip(compared) {
        let mut row = vec![
            one.name.clone(),
            one.callers.to_string(),
            with_ends(one.per_second(), count),
            figure(one.spread(|round| round.p50_millis).median),
            figure(one.spread(|round| round.p99_millis).median),
            figure(one.worst_millis()),
            with_ends(one.cpu_micros(), figure),
        ];
        if databases {
            row.push(one.database_micros().map_or_else(|| "–".into(), |spread| with_ends(spread, figure)));
        }
        if shared.is_some() {
            row.push(one.shared_by().map_or_else(|| "–".into(), |spread| figure(spread.median)));
        }
        row.extend(compared.iter().cloned());
        rows.push(row);
    }
    Table { rows }
}

/// `median (min–max)`.
pub fn with_ends(spread: Spread, show: impl Fn(f64) -> String) -> String {
    format!("{} ({}–{})", show(spread.median), show(spread.min), show(spread.max))
}

/// `1.24x (1.20–1.31)`.
pub fn times(spread: Spread) -> String {
    format!("{:.2}x ({:.2}–{:.2})", spread.median, spread.min, spread.max)
}

/// Three digits that mean something.
pub fn figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A figure; large ones with thousands set apart.
fn shown(value: f64) -> String {
    if value >= 1e4 { count(value) } else { figure(value) }
}

/// As it was written, and a fraction such as a third with three digits.
fn shortest(value: f64) -> String {
    let rounded = (value * 1e3).round() / 1e3;
    if value.fract() == 0.0 && value >= 1e4 { count(value) } else { rounded.to_string() }
}

/// Whole, with thousands set apart.
pub fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Where a figure should lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
    Below(f64),
}

/// A figure that the project wants to keep.
pub struct Aim {
    what: String,
    found: f64,
    bound: Bound,
    unit: &'static str,
}

impl Aim {
    pub fn new(what: impl Into<String>, found: f64, bound: Bound, unit: &'static str) -> Self {
        Self { what: what.into(), found, bound, unit }
    }

    fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.found >= bound,
            Bound::AtMost(bound) => self.found <= bound,
            Bound::Below(bound) => self.found < bound,
        }
    }

    fn cells(&self) -> [String; 4] {
        let (sign, bound) = match self.bound {
            Bound::AtLeast(bound) => (">=", bound),
            Bound::AtMost(bound) => ("<=", bound),
            Bound::Below(bound) => ("<", bound),
        };
        let bound = format!("{sign} {}{}", shortest(bound), self.unit);
        let judged = if self.is_met() { "met" } else { "NOT met" };
        [self.what.clone(), format!("{}{}", shown(self.found), self.unit), bound, judged.into()]
    }

    fn json(&self) -> Value {
        let [what, found, aim, _] = self.cells();
        json!({ "what": what, "found": found, "aim": aim, "met": self.is_met() })
    }
}

pub fn print_aims(aims: &[Aim]) {
    let mut table = Table::new(["aim", "measured", "wanted", ""]);
    aims.iter().for_each(|aim| table.row(aim.cells()));
    println!("\nAims\n\n{table}");
}

pub fn write_json(path: &Path, series: &[&[Series]], aims: &[Aim]) -> Result<()> {
    let aims: Vec<Value> = aims.iter().map(Aim::json).collect();
    let text = serde_json::to_string_pretty(&json!({ "candidates": series.concat(), "aims": aims }))?;
    Ok(std::fs::write(path, text + "\n")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_and_is_markdown() {
        let mut table = Table::new(["name", "n"]);
        table.row(["größer".into(), "1".into()]);
        assert_eq!(table.to_string(), "| name   | n |\n|--------|--:|\n| größer | 1 |\n");
    }

    #[test]
    fn figures_are_short() {
        assert_eq!([0.123, 12.34, 123.4].map(figure), ["0.12", "12.3", "123"]);
        assert_eq!([7.0, 1234.0, 1_234_567.8].map(count), ["7", "1,234", "1,234,568"]);
    }

    #[test]
    fn bounds_are_short() {
        assert_eq!([3.0, 2.5, 1.0 / 3.0, 60_000.0].map(shortest), ["3", "2.5", "0.333", "60,000"]);
    }

    #[test]
    fn an_aim_is_judged_by_its_bound() {
        let met = |found, bound| Aim::new("x", found, bound, "").is_met();
        assert!(met(3.0, Bound::AtLeast(3.0)) && met(2.5, Bound::AtMost(2.5)) && !met(50.0, Bound::Below(50.0)));
    }
}
