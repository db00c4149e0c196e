//! Wake-ups and notes between nodes by LISTEN and NOTIFY, over one connection that serves both. However many wake-ups are
//! asked for, at most one leaves in ten milliseconds: a NOTIFY per commit would slow every commit down.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use kernel::Result;
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    task::JoinHandle,
};
use tokio_postgres::AsyncMessage;

use super::connector::{ConnectionPurpose, Connector, Line, Refused};
use crate::db::Context;

const LISTEN: &str = "LISTEN tenantry_wake; LISTEN tenantry_note";
const NOTIFY: &str = "NOTIFY tenantry_wake";
const NOTE_CHANNEL: &str = "tenantry_note";
const NOTE: &str = "SELECT CAST(pg_notify('tenantry_note', $1) AS TEXT)";
/// Notes that may wait for the connection.
const NOTES: usize = 64;
const PAUSE: Duration = Duration::from_millis(10);
const RECONNECT_EVERY: Duration = Duration::from_millis(500);
/// How long closing waits for the last wake-up to leave.
const FAREWELL: Duration = Duration::from_secs(2);

pub(super) struct Signals {
    requests: Mutex<Option<Sender<()>>>,
    notes: Sender<String>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Signals {
    /// Listens once this returns.
    pub(super) async fn start(connector: Arc<Connector>, context: Arc<Context>) -> Result<Self> {
        let line = listen(&connector, &context).await.map_err(Refused::into_startup_error)?;
        // One slot: a request that finds it taken is served by the one that waits there.
        let (requests, queue) = channel(1);
        let (notes, note_queue) = channel(NOTES);
        let task = tokio::spawn(run(connector, context, line, queue, note_queue));
        Ok(Self { requests: Mutex::new(Some(requests)), notes, task: Mutex::new(Some(task)) })
    }

    pub(super) fn notify(&self) {
        if let Some(requests) = &*self.requests.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = requests.try_send(());
        }
    }

    pub(super) fn send_note(&self, note: String) -> bool {
        self.notes.try_send(note).is_ok()
    }

    pub(super) async fn close(&self) {
        drop(self.requests.lock().unwrap_or_else(PoisonError::into_inner).take());
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut task) = task
            && tokio::time::timeout(FAREWELL, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

async fn listen(connector: &Connector, context: &Arc<Context>) -> Result<Line, Refused> {
    // Our own notifications come back to us; whoever asked for them has rung already.
    let own = Arc::new(AtomicI32::new(0));
    let (context, process) = (context.clone(), own.clone());
    let hear = move |message| {
        if let AsyncMessage::Notification(notification) = message
            && notification.process_id() != process.load(Ordering::Acquire)
        {
            match notification.channel() {
                NOTE_CHANNEL => context.notes.hear(notification.payload()),
                _ => context.wake.ring(),
            }
        }
    };
    let line = connector.connect_async_once(ConnectionPurpose::SingleStatements, hear).await?;
    own.store(line.greeting.process, Ordering::Release);
    line.client.batch_execute(LISTEN).await.map_err(|error| connector.refused(&error))?;
    Ok(line)
}

/// What the connection is wanted for.
enum Task {
    Wake,
    Note(String),
    /// It ended.
    Reconnect,
}

/// Ends when the database handle is dropped or closed.
async fn run(
    connector: Arc<Connector>,
    context: Arc<Context>,
    mut line: Line,
    mut requests: Receiver<()>,
    mut notes: Receiver<String>,
) {
    loop {
        let task = tokio::select! {
            request = requests.recv() => match request {
                Some(()) => Task::Wake,
                None => return,
            },
            Some(note) = notes.recv() => Task::Note(note),
            _ = &mut line.driver => Task::Reconnect,
        };
        let done = match &task {
            Task::Wake => line.client.batch_execute(NOTIFY).await.is_ok(),
            Task::Note(note) => line.client.execute(NOTE, &[note]).await.is_ok(),
            Task::Reconnect => false,
        };
        if done {
            if matches!(task, Task::Wake) {
                tokio::time::sleep(PAUSE).await;
            }
            continue;
        }
        let Some(new) = reconnect(&connector, &context, &requests).await else { return };
        line = new;
        // Something may have been missed meanwhile.
        context.wake.ring();
        if matches!(task, Task::Wake) {
            let _ = line.client.batch_execute(NOTIFY).await;
        }
    }
}

async fn reconnect(connector: &Connector, context: &Arc<Context>, requests: &Receiver<()>) -> Option<Line> {
    while !requests.is_closed() {
        match listen(connector, context).await {
            Ok(line) => return Some(line),
            Err(refused) => tracing::warn!(cause = refused.message, "not listening for other nodes at the moment"),
        }
        tokio::time::sleep(RECONNECT_EVERY).await;
    }
    None
}
