//! Evaluation over HTTP: the context that was sent, completed by what the service knows, against compiled flags.

mod body;
pub mod http;
mod live;
mod tokens;

use std::sync::atomic::Ordering;

use kernel::{AppId, Result};

pub(crate) use body::{ContextBody, require_json};

use crate::{
    Flags,
    rules::{Context, Flag, SentContext},
};

/// A flag that is asked for often is noted this often, in microseconds.
const NOTED_EVERY: i64 = 60_000_000;

impl Flags {
    /// The context to evaluate by, and whether an access token was sent that had to be ignored.
    pub(crate) async fn context<'a>(&self, app: AppId, sent: SentContext<'a>) -> Result<(Context<'a>, bool)> {
        let SentContext { mut context, access_token } = sent;
        let Some(token) = access_token else { return Ok((context, false)) };
        let reads = self.memory.get(app).map(|flags| flags.reads).unwrap_or_default();
        // In a box of its own: it is large, and most requests bring no token.
        match Box::pin(tokens::live(&self.tenancy, app, &token, reads)).await? {
            Some(live) => {
                context.overrule(live);
                Ok((context, false))
            }
            None => Ok((context, true)),
        }
    }

    /// Notes that somebody asked for this very flag.
    pub(crate) fn asked(&self, app: AppId, flag: &Flag) {
        let now = self.tenancy.db.clock().now();
        if now.as_micros() - flag.last_asked.load(Ordering::Relaxed) > NOTED_EVERY {
            flag.last_asked.store(now.as_micros(), Ordering::Relaxed);
            self.usage.used(app, &flag.key, now);
        }
    }
}
