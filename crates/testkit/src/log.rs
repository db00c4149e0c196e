//! The log of a piece of a test, as JSON lines.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use tracing::{Dispatch, level_filters::LevelFilter};

/// Collects what is logged while its [`Log::dispatch`] is in force.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Everything of this level and above, from `future.with_subscriber(log.dispatch(…))`.
    pub fn dispatch(&self, level: LevelFilter) -> Dispatch {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt().json().with_max_level(level).with_writer(move || log.clone());
        Dispatch::new(subscriber.finish())
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
