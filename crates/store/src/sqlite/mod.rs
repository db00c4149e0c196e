//! SQLite: one writer thread with group commit, dedicated reader threads, a lane of its own for long scans.

mod connection;
pub(crate) mod estimates;
pub(crate) mod folder_lock;
mod readers;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

pub(crate) use connection::SqliteConnection;
use crossbeam_channel::{Sender, TrySendError, bounded};
use kernel::{Error, Result};

use crate::{
    db::{Context, Lane, Limits},
    fault,
    job::Job,
    private,
};
use folder_lock::FolderLock;

pub(crate) struct SqliteEngine {
    path: PathBuf,
    lanes: Mutex<Option<SqliteLanes>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Clone)]
struct SqliteLanes {
    write: Sender<Box<dyn Job>>,
    read: Sender<Box<dyn Job>>,
    scan: Sender<Box<dyn Job>>,
}

impl SqliteEngine {
    pub(crate) fn open(path: PathBuf, context: &Arc<Context>, limits: &Limits) -> Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        private::create_folder(folder)
            .map_err(|error| fault::unavailable(format!("cannot create {}: {error}", folder.display())))?;
        let lock = FolderLock::take(folder)?;
        claim(&path)?;

        let (write, write_queue) = bounded(limits.queue);
        let (read, read_queue) = bounded(limits.queue);
        let (scan, scan_queue) = bounded(limits.queue);
        let mut threads = Vec::new();
        // The writer comes first: it creates the file and sets the journal mode.
        let writer = writer::Writer::new(SqliteConnection::open_writer(&path)?, context.clone(), limits.batch);
        // The lock ends with the writer, neither before nor after: two writers on one data folder would each believe to
        // be the only one, and a closed database can be opened again though handles to it are still around.
        threads.push(spawn("sqlite-writer", move || {
            writer.run(&write_queue);
            drop(lock);
        })?);
        for number in 0..limits.readers.max(1) {
            let connection = SqliteConnection::open_reader(&path)?;
            let (context, queue) = (context.clone(), read_queue.clone());
            threads
                .push(spawn(&format!("sqlite-reader-{number}"), move || readers::run(connection, &context, &queue))?);
        }
        let (connection, scan_context) = (SqliteConnection::open_reader(&path)?, context.clone());
        threads.push(spawn("sqlite-scan", move || readers::run(connection, &scan_context, &scan_queue))?);

        Ok(Self { path, lanes: Mutex::new(Some(SqliteLanes { write, read, scan })), threads: Mutex::new(threads) })
    }

    /// How many closures wait, by lane.
    pub(crate) fn queued(&self) -> Vec<(&'static str, usize)> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lanes = lanes.as_ref().map(|lanes| [("write", &lanes.write), ("read", &lanes.read), ("scan", &lanes.scan)]);
        lanes.into_iter().flatten().map(|(name, queue)| (name, queue.len())).collect()
    }

    /// The bytes of the database's file and of its write-ahead log.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        let of = |path: &Path| path.metadata().map(|file| file.len()).unwrap_or_default();
        (of(&self.path), of(&beside(&self.path, "-wal")))
    }

    pub(crate) fn submit(&self, lane: Lane, job: Box<dyn Job>) -> Result<()> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lanes) = &*lanes else { return Err(fault::closed()) };
        let queue = match lane {
            Lane::Write => &lanes.write,
            Lane::Read | Lane::Snapshot => &lanes.read,
            Lane::Scan => &lanes.scan,
        };
        queue.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => fault::overloaded(),
            TrySendError::Disconnected(_) => fault::closed(),
        })
    }

    /// Closes the queues; the threads finish what is in them and end.
    pub(crate) async fn close(&self) {
        drop(self.lanes.lock().unwrap_or_else(PoisonError::into_inner).take());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let joined = tokio::task::spawn_blocking(move || threads.into_iter().for_each(|thread| drop(thread.join())));
        drop(joined.await);
    }

    /// `VACUUM INTO` reads one snapshot, so that writers continue meanwhile, and writes a compact file.
    pub(crate) async fn copy_to(&self, target: &Path) -> Result<()> {
        let (source, target) = (self.path.clone(), target.to_owned());
        tokio::task::spawn_blocking(move || SqliteConnection::open_reader(&source)?.vacuum_into(&target))
            .await
            .map_err(Error::internal)?
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(body).map_err(Error::internal)
}

/// The database is its owner's alone before SQLite opens it; SQLite gives its other files the same mode when it makes
/// them.
fn claim(path: &Path) -> Result<()> {
    let claimed = private::claim_file(path).and_then(|()| {
        ["-wal", "-shm"].into_iter().try_for_each(|suffix| private::restrict(&beside(path, suffix)).map(|_| ()))
    });
    claimed.map_err(|error| fault::unavailable(format!("cannot open {}: {error}", path.display())))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
