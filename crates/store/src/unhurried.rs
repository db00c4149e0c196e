//! Threads that give way: what they do, nobody waits for, or not for long. Whoever answers a request goes first.

use std::thread::{self, JoinHandle};

use kernel::{Error, Result};

/// A third of the share of a processor that others get while they want it, all of it when they do not.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;
#[cfg(target_os = "linux")]
const LEAST: i32 = 19;

/// Starts a thread that gives way to all other threads.
pub fn spawn_unhurried(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let body = move || {
        give_way();
        body();
    };
    thread::Builder::new().name(name.into()).spawn(body).map_err(Error::internal)
}

/// On Linux a thread has a priority of its own; elsewhere it would be that of the process.
#[cfg(target_os = "linux")]
fn give_way() {
    use rustix::process::{getpriority_process, setpriority_process};
    let lowered = getpriority_process(None).and_then(|own| setpriority_process(None, (own + NICENESS).min(LEAST)));
    if let Err(error) = lowered {
        tracing::debug!(%error, "a background thread keeps the priority of the others");
    }
}

#[cfg(not(target_os = "linux"))]
fn give_way() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn own_niceness() -> i32 {
        rustix::process::getpriority_process(None).expect("a priority")
    }

    #[test]
    fn only_the_thread_itself_gives_way() {
        let before = own_niceness();
        let lower = (before + NICENESS).min(LEAST);
        let thread = spawn_unhurried("unhurried", move || assert_eq!(own_niceness(), lower));
        thread.expect("a thread").join().expect("its niceness");
        assert_eq!(own_niceness(), before);
    }
}
