//! A test app on a real port, for counterparts that speak HTTP by themselves.

use std::sync::{Arc, Mutex, PoisonError};

use service::Options;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use web::server::{self, Limits, Stopped};

use crate::{EngineName, Fixture, TestApp};

/// A service that others reach by its address. Its background work runs when it is drained, or when somebody posts to
/// `/admin/test-clock`.
#[derive(Clone)]
pub struct OnPort {
    pub app: TestApp,
    /// `http://localhost:…`: browsers take it for as safe as https, which they do not of an IP address.
    pub base_url: String,
    server: Arc<Mutex<Option<Server>>>,
}

struct Server {
    stop: oneshot::Sender<()>,
    running: JoinHandle<Stopped>,
}

impl Fixture for OnPort {
    async fn prepare(engine: EngineName) -> Self {
        Self::start_with(engine, |_| {}).await
    }

    async fn finish(self) {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Server { stop, running } = server.expect("the server is stopped once");
        let _ = stop.send(());
        running.await.expect("the server ends");
        self.app.finish().await;
    }
}

impl OnPort {
    /// With some options changed.
    pub async fn start_with(engine: EngineName, change: impl FnOnce(&mut Options)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base_url = format!("http://localhost:{}", listener.local_addr().expect("an address").port());
        let app = TestApp::start_with(engine, |options| {
            options.base_url.clone_from(&base_url);
            change(options);
        })
        .await;
        let (stop, stopped) = oneshot::channel();
        let stopped = async move { stopped.await.unwrap_or_default() };
        let running = tokio::spawn(server::serve(listener, app.service().app(), Limits::default(), stopped));
        Self { app, base_url, server: Arc::new(Mutex::new(Some(Server { stop, running }))) }
    }
}
