//! Lossy channels, for signals at a high rate of which only the newest matters: "this counter stands at 41".
//!
//! Signals have a key. While one waits, a newer one with the same key takes its place, so that a listener hears at most
//! one per key and pace. Sending never waits and never fails; what does not fit is dropped. They reach the listeners of
//! all nodes, over the database's notifications on PostgreSQL, and survive nothing. What must not be lost is a fact.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use store::{Db, LONGEST_NOTE};
use tokio::{
    sync::{Notify, broadcast},
    task::AbortHandle,
};

/// Keys that may wait; the oldest makes room for the newest.
const KEYS: usize = 2_048;
/// Signals that a listener may be behind before it misses some: twice what can leave at once.
const BEHIND: usize = 2 * KEYS;

/// A signal and its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyed<T> {
    pub key: String,
    pub signal: T,
}

/// The sending end, and where listeners come from. Cheap to clone; the channel ends with the last clone.
pub struct Lossy<T>(Arc<Inner<T>>);

struct Inner<T> {
    name: &'static str,
    db: Db,
    waiting: Mutex<Waiting<T>>,
    rung: Arc<Notify>,
    listeners: broadcast::Sender<Arc<Keyed<T>>>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl<T> Clone for Lossy<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Drop for Inner<T> {
    fn drop(&mut self) {
        self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner).iter().for_each(AbortHandle::abort);
    }
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Lossy<T> {
    /// Opens the channel on this node: once per name and process, inside a Tokio runtime. `pace` is the shortest time
    /// between two signals of one key.
    pub fn open(db: &Db, name: &'static str, pace: Duration) -> Self {
        let rung = Arc::new(Notify::new());
        let inner = Arc::new(Inner {
            name,
            db: db.clone(),
            waiting: Mutex::new(Waiting::new()),
            rung: rung.clone(),
            listeners: broadcast::Sender::new(BEHIND),
            tasks: Mutex::default(),
        });
        let sending = tokio::spawn(send_what_waits(Arc::downgrade(&inner), rung, pace)).abort_handle();
        let hearing = tokio::spawn(hear_others(Arc::downgrade(&inner), db.notes())).abort_handle();
        inner.tasks.lock().unwrap_or_else(PoisonError::into_inner).extend([sending, hearing]);
        Self(inner)
    }

    /// Never waits. Call it from `tx.on_commit`, so that nobody hears of what was not committed.
    pub fn send(&self, key: impl Into<String>, signal: T) {
        self.send_merged(key, signal, |older, newer| *older = newer);
    }

    /// The same, where the newer of two adds to the older: `merge` makes one of them.
    pub fn send_merged(&self, key: impl Into<String>, signal: T, merge: fn(&mut T, T)) {
        let dropped = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).put(key.into(), signal, merge);
        self.0.rung.notify_one();
        if dropped {
            self.0.count_dropped();
        }
    }

    /// Hears what is sent from now on, here and on other nodes.
    pub fn listen(&self) -> Listener<T> {
        Listener(self.0.listeners.subscribe())
    }
}

/// One who hears.
pub struct Listener<T>(broadcast::Receiver<Arc<Keyed<T>>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard<T> {
    Signal(Arc<Keyed<T>>),
    /// So many signals were missed since the last one: this listener is too slow.
    Missed(u64),
}

impl<T> Listener<T> {
    /// `None` when the channel has ended.
    pub async fn next(&mut self) -> Option<Heard<T>> {
        match self.0.recv().await {
            Ok(signal) => Some(Heard::Signal(signal)),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(Heard::Missed(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl<T> Inner<T> {
    fn count_dropped(&self) {
        metrics::counter!("tenantry_lossy_dropped_total", "channel" => self.name).increment(1);
    }
}

impl<T: Serialize> Inner<T> {
    /// To the listeners here, and in as few notes as they fit into to the other nodes.
    fn send_now(&self, signals: Vec<Keyed<T>>) {
        let mut notes = Notes { channel: self.name, texts: Vec::new() };
        for signal in signals {
            if !self.db.is_single_node() && !notes.add(&signal) {
                self.count_dropped();
            }
            // Nobody may be listening.
            let _ = self.listeners.send(Arc::new(signal));
        }
        for note in notes.finish() {
            if !self.db.send_note(note) {
                self.count_dropped();
            }
        }
    }
}

/// The first signal leaves at once, what comes within `pace` after it leaves together.
async fn send_what_waits<T: Serialize>(channel: Weak<Inner<T>>, rung: Arc<Notify>, pace: Duration) {
    loop {
        rung.notified().await;
        let Some(channel) = channel.upgrade() else { return };
        let signals = channel.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        channel.send_now(signals);
        drop(channel);
        tokio::time::sleep(pace).await;
    }
}

async fn hear_others<T: DeserializeOwned>(channel: Weak<Inner<T>>, mut notes: broadcast::Receiver<Arc<str>>) {
    loop {
        let note = match notes.recv().await {
            Ok(note) => note,
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let Some(channel) = channel.upgrade() else { return };
        // Another release may send what this one cannot read.
        if let Some(text) = note.strip_prefix(channel.name).and_then(|rest| rest.strip_prefix(' '))
            && let Ok(signals) = serde_json::from_str::<Vec<Keyed<T>>>(text)
        {
            signals.into_iter().for_each(|signal| drop(channel.listeners.send(Arc::new(signal))));
        }
    }
}

/// The newest signal of each key, in the order in which the keys came.
struct Waiting<T> {
    newest: HashMap<String, T>,
    order: VecDeque<String>,
}

impl<T> Waiting<T> {
    fn new() -> Self {
        Self { newest: HashMap::new(), order: VecDeque::new() }
    }

    /// Whether another key had to make room.
    fn put(&mut self, key: String, signal: T, merge: fn(&mut T, T)) -> bool {
        if let Some(older) = self.newest.get_mut(&key) {
            merge(older, signal);
            return false;
        }
        let full = self.order.len() >= KEYS;
        if full && let Some(oldest) = self.order.pop_front() {
            self.newest.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.newest.insert(key, signal);
        full
    }

    fn take(&mut self) -> Vec<Keyed<T>> {
        let order = std::mem::take(&mut self.order);
        let mut newest = std::mem::take(&mut self.newest);
        order.into_iter().filter_map(|key| newest.remove(&key).map(|signal| Keyed { key, signal })).collect()
    }
}

/// Packs signals into notes: the channel's name, a space, and a JSON list.
struct Notes {
    channel: &'static str,
    texts: Vec<String>,
}

impl Notes {
    /// `false` when it fits into no note.
    fn add<T: Serialize>(&mut self, signal: &Keyed<T>) -> bool {
        let Ok(text) = serde_json::to_string(signal) else { return false };
        // The list's brackets and the comma before the signal.
        if self.channel.len() + " []".len() + text.len() > LONGEST_NOTE {
            return false;
        }
        match self.texts.last_mut() {
            Some(note) if note.len() + ",]".len() + text.len() <= LONGEST_NOTE => {
                note.push(',');
                note.push_str(&text);
            }
            _ => self.texts.push(format!("{} [{text}", self.channel)),
        }
        true
    }

    fn finish(self) -> impl Iterator<Item = String> {
        self.texts.into_iter().map(|note| note + "]")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_newest_of_a_key_waits_and_the_oldest_key_makes_room() {
        let mut all = Waiting::new();
        let mut add = |key: &str, signal| all.put(key.into(), signal, |older, newer| *older += newer);
        assert!(!add("a", 1) && !add("b", 2) && !add("a", 3));
        assert_eq!(all.take(), [Keyed { key: "a".into(), signal: 4 }, Keyed { key: "b".into(), signal: 2 }]);
        let mut waiting = Waiting::new();
        let newest = |older: &mut i32, newer| *older = newer;
        assert!(
            !waiting.put("a".into(), 1, newest)
                && !waiting.put("b".into(), 2, newest)
                && !waiting.put("a".into(), 3, newest)
        );
        assert_eq!(waiting.take(), [Keyed { key: "a".into(), signal: 3 }, Keyed { key: "b".into(), signal: 2 }]);
        for key in 0..KEYS {
            assert!(!waiting.put(key.to_string(), 0, newest));
        }
        assert!(!waiting.put("7".into(), 1, newest), "it has its place");
        assert!(waiting.put("new".into(), 1, newest));
        let left = waiting.take();
        assert_eq!((left.len(), left[0].key.as_str(), left[KEYS - 1].key.as_str()), (KEYS, "1", "new"));
        assert!(waiting.take().is_empty());
    }

    proptest! {
        #[test]
        fn notes_hold_every_signal_that_fits_and_none_is_too_long(
            signals in prop::collection::vec(("\\PC{0,20}", "[ -~]{0,40}", 0_usize..9_000), 0..40),
        ) {
            let signals: Vec<Keyed<String>> =
                signals.into_iter().map(|(key, text, length)| Keyed { key, signal: text + &"x".repeat(length) }).collect();
            let mut notes = Notes { channel: "test", texts: Vec::new() };
            let taken: Vec<_> = signals.iter().filter(|signal| notes.add(signal)).cloned().collect();
            let mut read = Vec::new();
            for note in notes.finish() {
                prop_assert!(note.len() <= LONGEST_NOTE);
                let list = note.strip_prefix("test ").expect("the channel's name");
                read.extend(serde_json::from_str::<Vec<Keyed<String>>>(list).expect("JSON"));
            }
            prop_assert!(signals.iter().all(|signal| taken.contains(signal) || signal.signal.len() > 7_000));
            prop_assert_eq!(read, taken);
        }
    }
}
