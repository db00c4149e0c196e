//! A whole service in process.

use std::{
    any::Any,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use kernel::{AppId, Timestamp};
use serde_json::json;
use service::{Options, Service};
use spine::outbox;
use store::EngineName;

use crate::{Caller, CaughtMail, CaughtSms, OPERATOR_KEY, Site, messages};

/// A service on a database of its own, with a first app. Cheap to clone.
#[derive(Clone)]
pub struct TestApp(Arc<Inner>);

struct Inner {
    service: Mutex<Arc<Service>>,
    site: Site,
    first: FirstApp,
    /// Facts that cannot be handled and jobs that fail are what the test is about.
    failures_expected: AtomicBool,
    /// The nodes that were started beside this one.
    further: Mutex<Vec<Arc<Service>>>,
    /// What the service needs until it is stopped.
    beside: Mutex<Vec<Box<dyn Any + Send>>>,
}

#[derive(Clone)]
struct FirstApp {
    id: AppId,
    api_key: String,
}

impl TestApp {
    pub async fn start(engine: EngineName) -> Self {
        Self::start_with(engine, |_| {}).await
    }

    pub async fn start_with(engine: EngineName, change: impl FnOnce(&mut Options)) -> Self {
        let site = Site::migrated(engine);
        let service = site.open(change).await.expect("the service opens");
        let first = service.first_run().await.expect("the first app can be made").expect("the installation is new");
        let first = FirstApp { id: first.app.id, api_key: first.api_key };
        Self(Arc::new(Inner {
            service: Mutex::new(Arc::new(service)),
            site,
            first,
            failures_expected: AtomicBool::new(false),
            further: Mutex::default(),
            beside: Mutex::default(),
        }))
    }

    /// Keeps a server that the service calls until the service is stopped.
    pub fn keep_beside(&self, server: impl Any + Send) {
        self.0.beside.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(server));
    }

    /// Stops the service and starts it again on the same data, with some options changed. Callers made before still
    /// speak to the stopped one.
    pub async fn restart_with(&self, change: impl FnOnce(&mut Options)) {
        self.assert_no_failures().await;
        self.service().close().await;
        let service = self.0.site.open(change).await.expect("the service opens again");
        *self.0.service.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(service);
    }

    pub async fn restart(&self) {
        self.restart_with(|_| {}).await;
    }

    /// A further node on the same database. SQLite serves one process only: there it is the same node.
    pub async fn another_node(&self) -> Self {
        self.another_node_with(|_| {}).await
    }

    pub async fn another_node_with(&self, change: impl FnOnce(&mut Options)) -> Self {
        if self.0.site.engine() == EngineName::Sqlite {
            return self.clone();
        }
        let Inner { site, first, .. } = &*self.0;
        let service = Arc::new(site.open(change).await.expect("a further node opens"));
        self.further().push(Arc::clone(&service));
        Self(Arc::new(Inner {
            service: Mutex::new(service),
            site: site.clone(),
            first: first.clone(),
            failures_expected: AtomicBool::new(false),
            further: Mutex::default(),
            beside: Mutex::default(),
        }))
    }

    fn further(&self) -> MutexGuard<'_, Vec<Arc<Service>>> {
        self.0.further.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn service(&self) -> Arc<Service> {
        Arc::clone(&self.0.service.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn site(&self) -> &Site {
        &self.0.site
    }

    /// Nobody in particular.
    pub fn anon(&self) -> Caller {
        Caller::new(self.service().app())
    }

    /// The operator of the installation.
    pub fn operator(&self) -> Caller {
        self.anon().with_operator_key(OPERATOR_KEY)
    }

    /// The first app's own key, with the usual privileges.
    pub fn key(&self) -> Caller {
        let FirstApp { id, api_key } = &self.0.first;
        self.anon().with_api_key(*id, api_key)
    }

    /// By the service's clock.
    pub fn now(&self) -> Timestamp {
        self.service().core().db.clock().now()
    }

    /// The first app's id.
    pub fn app_id(&self) -> AppId {
        self.0.first.id
    }

    /// A further key of the first app with exactly these privileges.
    pub async fn key_with(&self, privileges: &[&str]) -> Caller {
        let id = self.app_id();
        let body = json!({ "name": "Some privileges", "privileges": privileges });
        let made = self.operator().post(&format!("/admin/apps/{id}/keys"), body).await.expect(201);
        self.anon().with_api_key(id, &made.text("/key")).with_key_id(&made.text("/record/id"))
    }

    /// The key of another app, made for the purpose.
    pub async fn other_app(&self) -> Caller {
        let name = self.service().core().db.entropy().base62(8).to_lowercase();
        let body = json!({ "name": "Other", "domain": format!("{name}.other.example") });
        let made = self.operator().post("/admin/apps", body).await.expect(201);
        self.anon().with_api_key(made.id("/app/id"), &made.text("/apiKey"))
    }

    /// Does all background work that is due.
    pub async fn drain(&self) {
        self.service().drain().await.expect("the background work succeeds");
    }

    /// Lets several nodes do at once what is due, until nothing is left that any of them can do: what one node makes due may be
    /// for the holder of a lease, who found nothing before.
    pub async fn drain_all(nodes: &[Self]) {
        join_all(nodes.iter().map(Self::drain)).await;
        for _ in nodes {
            for node in nodes {
                node.drain().await;
            }
        }
    }

    /// Moves the test clock, doing at each moment what is due then, and in the end all upkeep.
    pub async fn advance(&self, duration: Duration) {
        let body = json!({ "advanceSeconds": duration.as_secs() });
        self.operator().post("/admin/test-clock", body).await.expect(200);
        self.drain().await;
    }

    /// The mails that left, in the order in which they were queued.
    pub fn mails(&self) -> Vec<CaughtMail> {
        messages::mails(&self.0.site.folder().join("mail"))
    }

    /// The SMS that left, in the order in which they were queued.
    pub fn sms(&self) -> Vec<CaughtSms> {
        messages::sms(&self.0.site.folder().join("sms"))
    }

    /// Fails when something was emitted that no room has registered, and that `docs/facts.md` does not know.
    pub async fn assert_facts_are_registered(&self) {
        let emitted = self.service().core().db.read(|tx| tx.all::<(String,)>("SELECT DISTINCT kind FROM outbox", &[]));
        for (kind,) in emitted.await.expect("the outbox can be read") {
            let known = service::facts::ROOMS.iter().flat_map(|room| room.facts).any(|fact| fact.kind == kind);
            assert!(known, "{kind} is emitted by none of the rooms' facts.rs");
        }
    }

    /// Fails when background work is due that nobody has done.
    pub async fn assert_nothing_due(&self) {
        self.assert_done_until(self.now()).await;
    }

    /// Fails when background work was due then that nobody has done since.
    async fn assert_done_until(&self, then: Timestamp) {
        let due = self.service().next_due().await.expect("the service can be asked what is due");
        assert!(due.is_none_or(|due| due > then), "background work is due");
    }

    /// For a test of facts that cannot be handled, or of jobs that fail: otherwise these fail the test.
    pub fn expect_failures(&self) {
        self.0.failures_expected.store(true, Ordering::Relaxed);
    }

    /// Does what is still due, so that each test has seen what follows from what it did, and stops the service.
    pub async fn end(&self) {
        // What they hold a lease for is left to this node.
        let further = std::mem::take(&mut *self.further());
        for node in further {
            node.close().await;
        }
        if !self.0.failures_expected.load(Ordering::Relaxed) {
            // The clock goes on: what falls due meanwhile need not be done.
            let began = self.now();
            self.drain().await;
            self.assert_done_until(began).await;
            self.assert_no_failures().await;
        }
        self.assert_facts_are_registered().await;
        self.service().close().await;
    }

    /// Fails when a job failed, or a consumer of facts did.
    async fn assert_no_failures(&self) {
        if self.0.failures_expected.load(Ordering::Relaxed) {
            return;
        }
        let service = self.service();
        assert_eq!(service.failed_jobs(), Vec::<&str>::new(), "jobs failed");
        let facts = service.core().db.read(|tx| Ok((outbox::parked(tx, 10)?, outbox::retrying(tx)?)));
        assert_eq!(facts.await.expect("the outbox can be read"), (vec![], vec![]), "facts were not handled");
    }
}
