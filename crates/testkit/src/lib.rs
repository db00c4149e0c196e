//! The kit of the HTTP tests: a whole service in process on either engine, callers with a name, and catchers for what
//! leaves it.
//!
//! ```ignore
//! testkit::on_both_engines!(a_revoked_key_is_refused);
//!
//! async fn a_revoked_key_is_refused(app: TestApp) {
//!     let key = app.key_with(&["APP_READ"]).await;
//!     app.operator().delete(&format!("/admin/apps/{}/keys/{}", key.app_id(), key.key_id())).await.expect(200);
//!     key.get("/account/app").await.error(401, "INVALID_CREDENTIAL");
//! }
//! ```
//!
//! Background work runs when a test drains it, and at the end of each test. A test fails on jobs that failed and facts that
//! could not be handled, unless it says `app.expect_failures()`.

mod answer;
pub mod api_tokens;
mod app;
pub mod billing;
mod browser;
mod caller;
pub mod catalog;
mod clickhouse;
pub mod counterparts;
mod directories;
pub mod factors;
pub mod facts;
pub mod files;
mod fixture;
pub mod flags;
pub mod hosted;
mod identity_provider;
mod log;
pub mod members;
mod messages;
mod on_port;
mod openid_provider;
pub mod passkeys;
pub mod payments;
pub mod people;
pub mod queued;
mod receiver;
pub mod routes;
pub mod s3;
mod site;
mod snapshot;
pub mod streams;
pub mod tokens;
pub mod webhooks;
mod workspace;

pub use answer::Answer;
pub use app::TestApp;
pub use browser::{Browser, HERE};
pub use caller::Caller;
pub use clickhouse::ClickHouse;
pub use directories::DirectoryCaller;
pub use fixture::{Fixture, run};
pub use identity_provider::{Cipher, IdentityProvider, SamlRequest};
pub use log::Log;
pub use messages::{CaughtMail, CaughtSms};
pub use on_port::OnPort;
pub use openid_provider::{Instead, OpenIdProvider, OpenIdRequest};
pub use people::{PAGE, Person, Tokens};
pub use receiver::{Received, Receiver, Reply};
pub use site::{MASTER_KEY, OPERATOR_KEY, Site};
pub use snapshot::redacted;
pub use store::EngineName;
pub use workspace::Workspace;

#[doc(hidden)]
pub use insta;

/// Makes two tests, `name::sqlite` and `name::postgres`, of each `async fn name(app: TestApp)`. The argument may be
/// anything that is a [`Fixture`].
#[macro_export]
macro_rules! on_both_engines {
    ($($name:ident),+ $(,)?) => { $(
        mod $name {
            #[test]
            fn sqlite() {
                $crate::run($crate::EngineName::Sqlite, super::$name);
            }

            #[test]
            fn postgres() {
                $crate::run($crate::EngineName::Postgres, super::$name);
            }
        }
    )+ };
}

/// The same for what no store has a part in: one test, on the embedded engine.
#[macro_export]
macro_rules! on_one_engine {
    ($($name:ident),+ $(,)?) => { $(
        mod $name {
            #[test]
            fn sqlite() {
                $crate::run($crate::EngineName::Sqlite, super::$name);
            }
        }
    )+ };
}

/// The whole body of an answer against an inline snapshot. Ids, times and keys are hidden, once their form is right.
#[macro_export]
macro_rules! assert_body {
    ($answer:expr, @$snapshot:literal) => {
        $crate::assert_text!($crate::redacted(&$answer.json()), @$snapshot)
    };
}

/// A text against an inline snapshot.
#[macro_export]
macro_rules! assert_text {
    ($text:expr, @$snapshot:literal) => {{
        let text = $text;
        // Both engines may run in one process, and must answer the same.
        $crate::insta::allow_duplicates! {
            $crate::insta::assert_snapshot!(text, @$snapshot)
        }
    }};
}
