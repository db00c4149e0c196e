//! What a form leaves for the page that it leads back to: what was wrong, and what was typed. It stands in a sealed cookie
//! until the page has shown it, so that no answer to a form is a page: going back never sends a form again.

use std::{collections::BTreeMap, time::Duration};

use http::HeaderValue;
use kernel::{Error, Result};
use serde::{Deserialize, Serialize};
use vault::Place;

use super::{Guest, Reply, cookies::Cookie};

const LIFETIME: Duration = Duration::from_secs(600);
/// In bytes; three such texts fit into a cookie.
const LONGEST_TYPED: usize = 600;

/// Texts by the names of fields; never a password.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Flash {
    /// The path of the page that it is for.
    page: String,
    problems: BTreeMap<String, String>,
    typed: BTreeMap<String, String>,
}

impl Flash {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// What is wrong with a field, in the app's words.
    #[must_use]
    pub(crate) fn problem(mut self, field: &str, text: impl Into<String>) -> Self {
        self.problems.insert(field.to_owned(), text.into());
        self
    }

    #[must_use]
    pub(crate) fn typed(mut self, field: &str, text: &str) -> Self {
        // Browsers drop cookies above 4 KiB.
        let end = text.floor_char_boundary(LONGEST_TYPED);
        self.typed.insert(field.to_owned(), text[..end].to_owned());
        self
    }

    pub(crate) fn problem_of(&self, field: &str) -> Option<&str> {
        self.problems.get(field).map(String::as_str)
    }

    pub(crate) fn typed_in(&self, field: &str) -> Option<&str> {
        self.typed.get(field).map(String::as_str)
    }

    pub(crate) fn is_problem(&self) -> bool {
        !self.problems.is_empty()
    }
}

fn place(guest: &Guest) -> Place<'static> {
    Place { table: "cookies", column: "flash", row: "", app: Some(guest.app.id) }
}

/// Leads back to a page, which will show this.
pub(crate) fn back(guest: &Guest, address: String, flash: Flash) -> Result<Reply> {
    let page = address.split('?').next().unwrap_or_default().to_owned();
    Ok(Reply::see(address).with_cookie(cookie(guest, &Flash { page, ..flash })?))
}

fn cookie(guest: &Guest, flash: &Flash) -> Result<HeaderValue> {
    let json = serde_json::to_vec(flash).map_err(Error::internal)?;
    let sealed = guest.identity.tenancy.keyring.seal_for_page(&place(guest), &json);
    Ok(guest.set(Cookie::Flash, &sealed, LIFETIME))
}

/// What was left for a page; nothing when it was left for another.
pub(crate) fn left_for(guest: &Guest, page: &str) -> Flash {
    let sealed = guest.cookie(Cookie::Flash);
    let json = sealed.and_then(|sealed| guest.identity.tenancy.keyring.open_from_page(&place(guest), sealed).ok());
    let flash = json.and_then(|json| serde_json::from_slice::<Flash>(json.expose()).ok());
    flash.filter(|flash| flash.page == page).unwrap_or_default()
}
