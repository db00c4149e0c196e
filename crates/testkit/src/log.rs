//! The log of a test's process, as JSON lines.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use tracing::level_filters::LevelFilter;

/// Collects what this process logs.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Everything down to debug level, of all threads, from the first call on.
    pub fn of_this_process() -> Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = Self::default();
            let writer = log.clone();
            let lines = tracing_subscriber::fmt().json().flatten_event(true).with_max_level(LevelFilter::DEBUG);
            let subscriber = lines.with_writer(move || writer.clone()).finish();
            tracing::subscriber::set_global_default(subscriber).expect("nobody else collects this process's log");
            log
        })
        .clone()
    }

    pub fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
