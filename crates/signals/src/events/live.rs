//! `GET /admin/apps/{app_id}/webhook/stream`: an app's events as they happen, for whoever develops a receiver. What is
//! sent here is sent besides: the app's webhook neither needs to be set nor notices.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use kernel::{AppId, Code, Error, Result};
use spine::Fact;
use tenancy::{apps, callers::Operator};
use tokio::sync::mpsc;
use web::{Path, Routes, State};

use super::{Envelope, EventDefinition};
use crate::{Signals, realtime::EventStream};

/// Events that somebody may be behind before their stream ends.
const BEHIND: usize = 64;
/// Streams of one app on one node.
const MOST: usize = 16;

/// Who watches which app. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Watchers(Arc<Mutex<HashMap<AppId, Vec<mpsc::Sender<Bytes>>>>>);

impl Watchers {
    fn join(&self, app: AppId) -> Result<mpsc::Receiver<Bytes>> {
        let mut apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let watching = apps.entry(app).or_default();
        watching.retain(|watcher| !watcher.is_closed());
        if watching.len() >= MOST {
            return Err(Error::new(Code::Overloaded, format!("{MOST} streams of this app are open already.")));
        }
        let (sender, frames) = mpsc::channel(BEHIND);
        watching.push(sender);
        Ok(frames)
    }

    /// Passes an event on to those who watch its app.
    pub(crate) fn tell(&self, fact: &Fact) {
        let Some(app) = fact.app.filter(|_| EventDefinition::find(&fact.kind).is_some()) else { return };
        let mut apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watching) = apps.get_mut(&app) else { return };
        let Ok(event) = Envelope::of(fact, app).to_json() else { return };
        let frame = Bytes::from(format!("id: {}\ndata: {event}\n\n", fact.position));
        watching.retain(|watcher| watcher.try_send(frame.clone()).is_ok());
        if watching.is_empty() {
            apps.remove(&app);
        }
    }

    /// Ends all streams.
    pub(crate) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

pub(super) fn routes() -> Routes<Signals> {
    Routes::new("Webhooks")
        .get("/admin/apps/{app_id}/webhook/stream", watch, "Watch an app's events as they happen")
        .answers(503, "Too many streams of this app are open")
        // Tools that try every operation would wait for its end.
        .hidden()
}

async fn watch(_: Operator, State(signals): State<Signals>, Path(app): Path<AppId>) -> Result<EventStream> {
    signals.db.read(move |tx| apps::get(tx, app)).await?;
    let frames = signals.watchers.join(app)?;
    Ok(EventStream::new(Vec::new(), frames, signals.settings.heartbeat, None))
}
