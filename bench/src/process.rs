//! What Linux tells about a process: the processor time it has used and the memory it holds.

use std::{fs, time::Duration};

use crate::Result;

/// `/proc` counts in hundredths of a second on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// User and system time of all its threads, those that have ended included.
pub fn cpu_time(process: u32) -> Result<Duration> {
    let path = format!("/proc/{process}/stat");
    let ticks = cpu_ticks(&fs::read_to_string(&path)?).ok_or_else(|| format!("{path} has an unknown form"))?;
    Ok(TICK * ticks)
}

/// The program's name, in parentheses, may hold anything; the fields after it are counted from the third on.
fn cpu_ticks(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u32>().ok();
    Some(next()? + next()?)
}

/// Resident memory in megabytes.
pub fn resident_megabytes(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/status");
    let kilobytes = resident_kilobytes(&fs::read_to_string(&path)?);
    Ok(kilobytes.ok_or_else(|| format!("{path} has an unknown form"))? as f64 / 1024.0)
}

fn resident_kilobytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_times_whatever_the_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194304 100 0 0 0 150 50 7 8 20 0 4 0 100";
        assert_eq!(cpu_ticks(stat), Some(200));
        assert_eq!(cpu_ticks("nonsense"), None);
    }

    #[test]
    fn reads_the_resident_memory() {
        assert_eq!(resident_kilobytes("VmSize:\t  99 kB\nVmRSS:\t   20480 kB\n"), Some(20480));
        assert!(resident_megabytes(std::process::id()).expect("Linux tells about this process") > 0.1);
    }
}
