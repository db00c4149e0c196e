//! A form counts once. People click twice, and a browser then drops the first answer and shows the second; so the same form,
//! sent again by the same browser within a moment, is answered like the first, on whichever node. The first is dealt with to
//! its end although nobody waits for its answer any more.

mod store;

use std::time::Duration;

use axum::extract::FromRequest;
use http::{HeaderValue, StatusCode};
use kernel::{Code, Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tenancy::Tenancy;
use vault::{Place, hash_token};
use web::{Describe, Failure, LenientForm, Operation};

use super::{Reply, cookies, wait};

/// Longer than anybody waits for a page, and not so long that going back and trying again is taken for impatience.
const REMEMBERED: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How often somebody looks whether the first has been answered: for 20 seconds.
const PATIENCE: u32 = 400;
/// How often somebody takes the place of one that led nowhere.
const ATTEMPTS: u32 = 5;

/// A form that was sent: what it holds, and what makes it count once.
pub struct Sent<T> {
    pub form: T,
    pub once: Once,
}

pub struct Once {
    /// Of the whole form; `None` from a browser without a cookie, whose form is refused anyway.
    digest: Option<String>,
    /// The sealed login request in it, if there is one.
    login: Option<String>,
}

impl<S: Sync, T: DeserializeOwned + JsonSchema + 'static> FromRequest<S> for Sent<T> {
    type Rejection = Failure;

    async fn from_request(request: axum::extract::Request, state: &S) -> Result<Self, Failure> {
        // A form from another site is judged by itself, and refused.
        let is_foreign = request.headers().get("sec-fetch-site").is_some_and(|site| site == "cross-site");
        let browser = cookies::browser_keys(request.headers()).filter(|_| !is_foreign);
        let path = request.uri().path().to_owned();
        let LenientForm { read, text } = LenientForm::<T>::from_request(request, state).await?;
        let digest = browser.map(|keys| hash_token(&format!("{keys}\n{path}\n{text}")));
        Ok(Self { form: read?, once: Once { digest, login: wait::login_in(&text) } })
    }
}

impl<T: JsonSchema> Describe for Sent<T> {
    fn describe(operation: &mut Operation) {
        LenientForm::<T>::describe(operation);
    }
}

/// Where a form led.
#[derive(Serialize, Deserialize)]
struct StoredReply {
    status: u16,
    location: String,
    cookies: Vec<String>,
}

fn place(digest: &str) -> Place<'_> {
    Place { table: "sent_forms", column: "reply", row: digest, app: None }
}

impl Once {
    /// Deals with the form, unless that was done or is being done: then the answer is the same. What led nowhere, such as an
    /// error, is forgotten. Whoever has to wait is led to a page that says so.
    pub async fn run(
        self,
        tenancy: Tenancy,
        work: impl Future<Output = Result<Reply>> + Send + 'static,
    ) -> Result<Reply> {
        let clock = tenancy.db.clock().clone();
        let outcome = match self.digest {
            Some(digest) => run_once(tenancy, digest, work).await,
            None => work.await,
        };
        outcome.or_else(|error| wait::lead(self.login.as_deref(), clock.now(), error))
    }
}

async fn run_once<W: Future<Output = Result<Reply>> + Send + 'static>(
    tenancy: Tenancy,
    digest: String,
    mut work: W,
) -> Result<Reply> {
    for _ in 0..ATTEMPTS {
        // A task of its own: a browser that sends a form again hangs up on the first.
        let attempt = tokio::spawn(attempt(tenancy.clone(), digest.clone(), work));
        match attempt.await.map_err(Error::internal)?? {
            Attempt::Dealt(reply) => return Ok(reply),
            Attempt::Taken(later) => work = later,
        }
        if let Some(reply) = answered(&tenancy, &digest).await? {
            return Ok(reply);
        }
    }
    Err(takes_long())
}

enum Attempt<W> {
    Dealt(Reply),
    /// Somebody else has the form.
    Taken(W),
}

/// Takes the form and deals with it, to its end.
async fn attempt<W: Future<Output = Result<Reply>>>(tenancy: Tenancy, digest: String, work: W) -> Result<Attempt<W>> {
    let claimed = digest.clone();
    if !tenancy.db.write(move |tx| store::claim(tx, &claimed, tx.now().plus(REMEMBERED))).await? {
        return Ok(Attempt::Taken(work));
    }
    let outcome = work.await;
    settle(&tenancy, &digest, outcome.as_ref().ok()).await?;
    outcome.map(Attempt::Dealt)
}

/// Waits for the answer that the form got from whoever has it; `None` when it led nowhere.
async fn answered(tenancy: &Tenancy, digest: &str) -> Result<Option<Reply>> {
    for _ in 0..PATIENCE {
        let asked = digest.to_owned();
        match tenancy.db.read(move |tx| store::find(tx, &asked)).await? {
            None => return Ok(None),
            Some(None) => tokio::time::sleep(LOOK_AGAIN).await,
            Some(Some(sealed)) => {
                let json = tenancy.keyring.open_from_page(&place(digest), &sealed)?;
                let stored: StoredReply = serde_json::from_slice(json.expose()).map_err(Error::internal)?;
                return stored.into_reply().map(Some);
            }
        }
    }
    Err(takes_long())
}

fn takes_long() -> Error {
    Error::new(Code::Overloaded, "This takes longer than usual. Go back and try again in a moment.")
}

async fn settle(tenancy: &Tenancy, digest: &str, reply: Option<&Reply>) -> Result<()> {
    let stored = reply.and_then(StoredReply::of);
    let json = stored.map(|stored| serde_json::to_vec(&stored)).transpose().map_err(Error::internal)?;
    let sealed = json.map(|json| tenancy.keyring.seal_for_page(&place(digest), &json));
    let digest = digest.to_owned();
    tenancy
        .db
        .write(move |tx| match &sealed {
            Some(sealed) => store::answer(tx, &digest, sealed),
            None => store::forget(tx, &digest),
        })
        .await
}

impl StoredReply {
    /// `None` for a page, which is not a way to somewhere, and for what may come out otherwise the next time.
    fn of(reply: &Reply) -> Option<Self> {
        let (status, location) = reply.elsewhere().filter(|_| !reply.is_passing())?;
        let cookies = reply.cookies().iter().map(|cookie| Some(cookie.to_str().ok()?.to_owned()));
        Some(Self { status: status.as_u16(), location: location.to_owned(), cookies: cookies.collect::<Option<_>>()? })
    }

    fn into_reply(self) -> Result<Reply> {
        let status = StatusCode::from_u16(self.status).map_err(Error::internal)?;
        let cookies = self.cookies.iter().map(|cookie| HeaderValue::try_from(cookie).map_err(Error::internal));
        Ok(Reply::to(status, self.location).with_cookies(cookies.collect::<Result<Vec<_>>>()?))
    }
}
