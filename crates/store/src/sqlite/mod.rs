//! SQLite: one writer thread with group commit, readers with threads of their own, which point reads do without, and a lane of its
//! own for long scans.

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
    Tx,
    db::{Context, Lane, Limits},
    fault,
    job::Job,
    private, spawn_unhurried,
};
use folder_lock::FolderLock;
use readers::Readers;

pub(crate) struct SqliteEngine {
    path: PathBuf,
    lanes: Mutex<Option<SqliteLanes>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct SqliteLanes {
    write: Sender<Box<dyn Job>>,
    read: Sender<Box<dyn Job>>,
    scan: Sender<Box<dyn Job>>,
    readers: Readers,
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
        let readers = Readers::open(&path, limits.readers.max(1))?;
        for number in 0..readers.count() {
            let (readers, context, queue) = (readers.clone(), context.clone(), read_queue.clone());
            threads.push(spawn(&format!("sqlite-reader-{number}"), move || readers.run(number, &context, &queue))?);
        }
        let (scanning, scan_context) = (Readers::open(&path, 1)?, context.clone());
        threads.push(spawn_unhurried("sqlite-scan", move || scanning.run(0, &scan_context, &scan_queue))?);

        let lanes = SqliteLanes { write, read, scan, readers };
        Ok(Self { path, lanes: Mutex::new(Some(lanes)), threads: Mutex::new(threads) })
    }

    /// How many closures wait, by lane.
    pub(crate) fn queued(&self) -> Vec<(&'static str, usize)> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lanes = lanes.as_ref().map(|lanes| [("write", &lanes.write), ("read", &lanes.read), ("scan", &lanes.scan)]);
        lanes.into_iter().flatten().map(|(name, queue)| (name, queue.len())).collect()
    }

    /// Whether closures wait for the one writer.
    pub(crate) fn has_waiting_writers(&self) -> bool {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.as_ref().is_some_and(|lanes| !lanes.write.is_empty())
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

    /// Runs a point read on the caller's own thread, if a reader is free at this moment.
    pub(crate) fn read_at_once<T>(
        &self,
        context: &Arc<Context>,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Option<Result<T>> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let readers = lanes.as_ref()?.readers.clone();
        drop(lanes);
        readers.read_at_once(context, work)
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
