//! The streams that are open on this node, and what each still has to be sent.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use kernel::{AppId, Code, Error, Result, TenantId};
use tokio::sync::mpsc;

use super::{Listener, Signal};

/// Signals that a reader may be behind; then it is dropped, and resumes by id.
const BEHIND: usize = 64;
/// Streams that one login may have open.
const MOST_OF_LOGIN: usize = 20;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Hub(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    most: usize,
}

#[derive(Default)]
struct State {
    /// The last fact that was passed on.
    position: i64,
    next: u64,
    count: usize,
    closed: bool,
    apps: HashMap<AppId, HashMap<TenantId, Vec<Open>>>,
}

struct Open {
    number: u64,
    /// What it knows without being told.
    after: i64,
    listener: Listener,
    frames: mpsc::Sender<Bytes>,
}

/// A place among the open streams, given back when it is dropped.
pub(crate) struct Place {
    hub: Hub,
    app: AppId,
    tenant: TenantId,
    number: u64,
}

/// A stream that was taken in: what it is told from `position` on arrives in `frames`.
pub(crate) struct Joined {
    pub(crate) place: Place,
    pub(crate) frames: mpsc::Receiver<Bytes>,
    pub(crate) position: i64,
}

/// A stream that may have to end.
pub(crate) struct Doubted {
    number: u64,
    pub(crate) listener: Listener,
}

impl Hub {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Inner { state: Mutex::default(), most }))
    }

    /// Takes in a stream that knows everything up to a position. 503 when there are too many, on this node or of the app,
    /// which may have half of them, or when this node is stopping. A login that has many loses its oldest.
    pub(crate) fn join(&self, listener: Listener, seen: i64) -> Result<Joined> {
        let mut state = self.state();
        if state.closed {
            return Err(Error::new(Code::ShuttingDown, "This node is shutting down. Connect again."));
        }
        state.make_room(&listener);
        if state.count >= self.0.most || state.of_app(listener.app).count() >= self.0.most.div_ceil(2) {
            return Err(Error::new(Code::Overloaded, "Too many streams are open on this node. Connect again later."));
        }
        let (sender, frames) = mpsc::channel(BEHIND);
        let (app, tenant, number) = (listener.app, listener.tenant, state.next);
        state.next += 1;
        state.count += 1;
        let open = Open { number, after: seen.max(state.position), listener, frames: sender };
        state.apps.entry(app).or_default().entry(tenant).or_default().push(open);
        metrics::gauge!("tenantry_streams").set(state.count as f64);
        Ok(Joined { place: Place { hub: self.clone(), app, tenant, number }, frames, position: state.position })
    }

    /// Everything before this position was passed on.
    pub(crate) fn start_at(&self, position: i64) {
        self.state().position = position;
    }

    /// Passes a fact's signals on, in order, and notes that it was.
    pub(crate) fn tell(&self, position: i64, signals: &[Signal]) {
        let mut state = self.state();
        state.position = state.position.max(position);
        for signal in signals {
            state.tell(signal);
        }
    }

    /// Passes on what has no position and may be lost.
    pub(crate) fn tell_in_passing(&self, signals: &[Signal]) {
        let mut state = self.state();
        signals.iter().for_each(|signal| state.tell(signal));
    }

    /// The streams for which this holds. What a stream's member is now can be changed on the way.
    pub(crate) fn doubt(&self, app: AppId, mut doubtful: impl FnMut(&mut Listener) -> bool) -> Vec<Doubted> {
        let mut state = self.state();
        let streams = state.apps.get_mut(&app).into_iter().flat_map(HashMap::values_mut).flatten();
        let doubted = streams.filter_map(|open| {
            doubtful(&mut open.listener).then(|| Doubted { number: open.number, listener: open.listener.clone() })
        });
        doubted.collect()
    }

    /// Ends a stream, once it has been told what was before.
    pub(crate) fn end(&self, Doubted { number, listener }: &Doubted) {
        self.state().remove(listener.app, listener.tenant, *number);
    }

    /// Ends the streams for which this holds, once they have been told what was before.
    pub(crate) fn end_if(&self, app: AppId, over: impl Fn(&Listener) -> bool) {
        let mut state = self.state();
        let State { apps, count, .. } = &mut *state;
        let Some(tenants) = apps.get_mut(&app) else { return };
        tenants.retain(|_, streams| {
            let before = streams.len();
            streams.retain(|open| !over(&open.listener));
            *count -= before - streams.len();
            !streams.is_empty()
        });
        if tenants.is_empty() {
            apps.remove(&app);
        }
        metrics::gauge!("tenantry_streams").set(state.count as f64);
    }

    pub(crate) fn end_all(&self) {
        let mut state = self.state();
        state.apps.clear();
        state.count = 0;
        metrics::gauge!("tenantry_streams").set(0.0);
    }

    /// Ends all streams, and takes in no more.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.end_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn wants(&self, signal: &Signal) -> bool {
        signal.id.is_none_or(|id| id > self.after) && signal.is_for(&self.listener)
    }
}

impl State {
    fn of_app(&self, app: AppId) -> impl Iterator<Item = &Open> {
        self.apps.get(&app).into_iter().flat_map(HashMap::values).flatten()
    }

    /// Ends the oldest stream of a login that has as many as it may.
    fn make_room(&mut self, Listener { app, login, .. }: &Listener) {
        let of_login = self.of_app(*app).filter(|open| open.listener.login == *login);
        let numbers: Vec<(u64, TenantId)> = of_login.map(|open| (open.number, open.listener.tenant)).collect();
        if numbers.len() >= MOST_OF_LOGIN
            && let Some((number, tenant)) = numbers.into_iter().min_by_key(|(number, _)| *number)
        {
            self.remove(*app, tenant, number);
        }
    }

    /// Removes a stream, if it is still there.
    fn remove(&mut self, app: AppId, tenant: TenantId, number: u64) {
        let Self { apps, count, .. } = self;
        if let Some(tenants) = apps.get_mut(&app)
            && let Some(streams) = tenants.get_mut(&tenant)
        {
            let before = streams.len();
            streams.retain(|open| open.number != number);
            *count -= before - streams.len();
            if streams.is_empty() {
                tenants.remove(&tenant);
            }
            if tenants.is_empty() {
                apps.remove(&app);
            }
        }
        metrics::gauge!("tenantry_streams").set(self.count as f64);
    }

    /// Serialised once per workspace that has a stream for it.
    fn tell(&mut self, signal: &Signal) {
        let Self { apps, count, .. } = self;
        let Some(tenants) = apps.get_mut(&signal.app) else { return };
        for (tenant, streams) in tenants {
            if !streams.iter().any(|open| open.wants(signal)) {
                continue;
            }
            let Ok(frame) = signal.to_frame(*tenant) else { continue };
            let before = streams.len();
            streams.retain(|open| !open.wants(signal) || open.frames.try_send(frame.clone()).is_ok());
            let dropped = before - streams.len();
            if dropped > 0 {
                *count -= dropped;
                metrics::counter!("tenantry_streams_dropped_total").increment(dropped as u64);
            }
        }
    }
}

impl Place {
    /// What is known of the listener since it joined.
    pub(crate) fn is_now(&self, listener: &Listener) {
        let mut state = self.hub.state();
        let streams = state.apps.get_mut(&self.app).and_then(|tenants| tenants.get_mut(&self.tenant));
        if let Some(open) = streams.into_iter().flatten().find(|open| open.number == self.number) {
            open.listener = listener.clone();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hub.state().remove(self.app, self.tenant, self.number);
    }
}

#[cfg(test)]
mod tests {
    use kernel::UserId;

    use super::*;

    fn listener(app: u128, tenant: u128, login: &str) -> Listener {
        Listener {
            app: AppId::from_u128(app),
            tenant: TenantId::from_u128(tenant),
            user: UserId::from_u128(1),
            role: "MEMBER".to_owned(),
            login: login.into(),
        }
    }

    #[test]
    fn an_app_leaves_half_of_the_streams_to_others() {
        let hub = Hub::new(4);
        let join = |app, login| hub.join(listener(app, 1, login), 0);
        let first: Vec<Joined> = ["a", "b"].into_iter().map(|login| join(1, login).expect("room")).collect();
        assert!(join(1, "c").is_err());
        let _second: Vec<Joined> = ["a", "b"].into_iter().map(|login| join(2, login).expect("room")).collect();
        assert!(join(3, "a").is_err());
        drop(first);
        assert!(join(1, "c").is_ok());
    }

    #[test]
    fn a_login_loses_its_oldest_stream_whichever_workspace_it_is_for() {
        let hub = Hub::new(100);
        let join = |tenant, login| hub.join(listener(1, tenant, login), 0).expect("room");
        let mut other = join(1, "other");
        let mut own: Vec<Joined> = (0..22).map(|number| join(number % 2, "own")).collect();
        let is_open = |joined: &mut Joined| joined.frames.try_recv() == Err(mpsc::error::TryRecvError::Empty);
        assert!(is_open(&mut other));
        let open: Vec<bool> = own.iter_mut().map(is_open).collect();
        assert_eq!(open, [[false; 2].as_slice(), &[true; 20]].concat());
    }
}
