//! What a test gets to work with, made before it and looked at after it.

use crate::{EngineName, Site, TestApp};

/// A test's argument.
pub trait Fixture: Clone {
    fn prepare(engine: EngineName) -> impl Future<Output = Self>;

    /// Fails the test when something it set going went wrong.
    fn finish(self) -> impl Future<Output = ()>;
}

impl Fixture for TestApp {
    async fn prepare(engine: EngineName) -> Self {
        Self::start(engine).await
    }

    async fn finish(self) {
        self.end().await;
    }
}

/// Without schema or keys, as before a first start.
impl Fixture for Site {
    async fn prepare(engine: EngineName) -> Self {
        Self::empty(engine)
    }

    async fn finish(self) {}
}

/// For tests that start several services.
impl Fixture for EngineName {
    async fn prepare(engine: EngineName) -> Self {
        engine
    }

    async fn finish(self) {}
}

/// Runs one test on one engine.
pub fn run<A: Fixture, F: Future<Output = ()>>(engine: EngineName, test: impl FnOnce(A) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be started").block_on(async {
        let fixture = A::prepare(engine).await;
        test(fixture.clone()).await;
        fixture.finish().await;
    });
}
