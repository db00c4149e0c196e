//! What Linux tells about a process: the processor time it has used and the memory it holds.

use std::{fs, time::Duration};

use crate::Result;

/// `/proc` counts in hundredths of a second on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// User and system time of all its threads, those that have ended included.
pub fn cpu_time(process: u32) -> Result<Duration> {
    Ok(TICK * (field(process, UTIME)? + field(process, UTIME + 1)?))
}

/// The same of the child processes that have ended.
pub fn cpu_time_of_ended_children(process: u32) -> Result<Duration> {
    Ok(TICK * (field(process, CUTIME)? + field(process, CUTIME + 1)?))
}

/// The process that started it.
pub fn parent(process: u32) -> Result<u32> {
    field(process, PPID)
}

/// Of a process, of those it started, and of those that have ended.
pub fn cpu_time_of_family(parent: u32) -> Result<Duration> {
    let mut total = cpu_time(parent)? + cpu_time_of_ended_children(parent)?;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that ends meanwhile is among the ended.
        if self::parent(process).is_ok_and(|its| its == parent) {
            total += cpu_time(process).unwrap_or_default();
        }
    }
    Ok(total)
}

/// Places behind the program's name.
const PPID: usize = 1;
const UTIME: usize = 11;
const CUTIME: usize = 13;

fn field(process: u32, place: usize) -> Result<u32> {
    let path = format!("/proc/{process}/stat");
    Ok(field_of(&fs::read_to_string(&path)?, place).ok_or_else(|| format!("{path} has an unknown form"))?)
}

/// The program's name, in parentheses, may hold anything; the fields are counted behind it.
fn field_of(stat: &str, place: usize) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(place)?.parse().ok()
}

/// Resident memory in megabytes.
pub fn resident_megabytes(process: u32) -> Result<f64> {
    megabytes(process, "VmRSS:")
}

/// The most that it ever was.
pub fn peak_resident_megabytes(process: u32) -> Result<f64> {
    megabytes(process, "VmHWM:")
}

fn megabytes(process: u32, name: &str) -> Result<f64> {
    let path = format!("/proc/{process}/status");
    let kilobytes = kilobytes(&fs::read_to_string(&path)?, name);
    Ok(kilobytes.ok_or_else(|| format!("{path} has an unknown form"))? as f64 / 1024.0)
}

fn kilobytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_and_parent_whatever_the_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194304 100 0 0 0 150 50 7 8 20 0 4 0 100";
        let read = |place| field_of(stat, place);
        assert_eq!([PPID, UTIME, UTIME + 1, CUTIME, CUTIME + 1].map(read), [1, 150, 50, 7, 8].map(Some));
        assert_eq!(field_of("nonsense", PPID), None);
    }

    #[test]
    fn reads_the_resident_memory() {
        let status = "VmSize:\t  99 kB\nVmHWM:\t   30720 kB\nVmRSS:\t   20480 kB\n";
        assert_eq!(["VmRSS:", "VmHWM:"].map(|name| kilobytes(status, name)), [Some(20480), Some(30720)]);
        let (now, most) = (resident_megabytes(std::process::id()), peak_resident_megabytes(std::process::id()));
        assert!(now.expect("Linux tells about this process") > 0.1 && most.expect("and its peak") > 0.1);
    }
}
