//! Wake-ups between nodes by LISTEN and NOTIFY, over one connection that serves both. However many are asked for, at
//! most one leaves in ten milliseconds: a NOTIFY per commit would slow every commit down.

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

use super::connector::{Connector, Line, Purpose, Refused};
use crate::wake::Wake;

const LISTEN: &str = "LISTEN tenantry_wake";
const NOTIFY: &str = "NOTIFY tenantry_wake";
const PAUSE: Duration = Duration::from_millis(10);
const RECONNECT_EVERY: Duration = Duration::from_millis(500);
/// How long closing waits for the last wake-up to leave.
const FAREWELL: Duration = Duration::from_secs(2);

pub(super) struct Signals {
    requests: Mutex<Option<Sender<()>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Signals {
    /// Listens once this returns.
    pub(super) async fn start(connector: Arc<Connector>, wake: Wake) -> Result<Self> {
        let line = listen(&connector, &wake).await.map_err(Refused::into_startup_error)?;
        // One slot: a request that finds it taken is served by the one that waits there.
        let (requests, queue) = channel(1);
        let task = tokio::spawn(run(connector, wake, line, queue));
        Ok(Self { requests: Mutex::new(Some(requests)), task: Mutex::new(Some(task)) })
    }

    pub(super) fn notify(&self) {
        if let Some(requests) = &*self.requests.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = requests.try_send(());
        }
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

async fn listen(connector: &Connector, wake: &Wake) -> Result<Line, Refused> {
    // Our own notifications come back to us; whoever asked for them has rung already.
    let own = Arc::new(AtomicI32::new(0));
    let (wake, process) = (wake.clone(), own.clone());
    let hear = move |message| {
        if let AsyncMessage::Notification(notification) = message
            && notification.process_id() != process.load(Ordering::Acquire)
        {
            wake.ring();
        }
    };
    let line = connector.connect_async_once(Purpose::SingleStatements, hear).await?;
    own.store(line.greeting.process, Ordering::Release);
    line.client.batch_execute(LISTEN).await.map_err(|error| connector.refused(&error))?;
    Ok(line)
}

/// Ends when the database handle is dropped or closed.
async fn run(connector: Arc<Connector>, wake: Wake, mut line: Line, mut requests: Receiver<()>) {
    loop {
        let wanted = tokio::select! {
            request = requests.recv() => match request {
                Some(()) => true,
                None => return,
            },
            _ = &mut line.driver => false,
        };
        if wanted && line.client.batch_execute(NOTIFY).await.is_ok() {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let Some(new) = reconnect(&connector, &wake, &requests).await else { return };
        line = new;
        // Something may have been missed meanwhile.
        wake.ring();
        if wanted {
            let _ = line.client.batch_execute(NOTIFY).await;
        }
    }
}

async fn reconnect(connector: &Connector, wake: &Wake, requests: &Receiver<()>) -> Option<Line> {
    while !requests.is_closed() {
        match listen(connector, wake).await {
            Ok(line) => return Some(line),
            Err(refused) => tracing::warn!(cause = refused.message, "not listening for other nodes at the moment"),
        }
        tokio::time::sleep(RECONNECT_EVERY).await;
    }
    None
}
