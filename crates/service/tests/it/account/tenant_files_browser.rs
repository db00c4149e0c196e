//! Files in Chromium: uploads from the pages of an app on another site, into a folder and into a bucket, and what a hostile file
//! can do to whoever opens it.

use testkit::{EngineName, Fixture, OnPort, counterparts, on_both_engines, s3::S3};

on_both_engines!(
    people_upload_with_a_browser,
    people_upload_into_a_bucket_with_a_browser,
    hostile_files_do_nothing_in_a_browser,
);

/// A server whose files are in a bucket.
#[derive(Clone)]
struct WithBucket(OnPort);

impl Fixture for WithBucket {
    async fn prepare(engine: EngineName) -> Self {
        let s3 = S3::start_alone().await;
        let place = s3.place();
        let server = OnPort::start_with(engine, |options| options.files.place = place).await;
        server.app.keep_beside(s3);
        Self(server)
    }

    async fn finish(self) {
        self.0.finish().await;
    }
}

async fn people_upload_with_a_browser(server: OnPort) {
    counterparts::run(&server, "uploads.mjs").await;
}

async fn people_upload_into_a_bucket_with_a_browser(WithBucket(server): WithBucket) {
    counterparts::run_with(&server, "uploads.mjs", &[("IN_BUCKET", "true".into())]).await;
}

async fn hostile_files_do_nothing_in_a_browser(server: OnPort) {
    counterparts::run(&server, "hostile.mjs").await;
}
