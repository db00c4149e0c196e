//! What a form leaves for the page that it leads back to: what was wrong, and what was typed. It stands in a sealed cookie
//! until the page has shown it, so that no answer to a form is a page: going back never sends a form again.

use std::{collections::BTreeMap, time::Duration};

use http::HeaderMap;
use kernel::{AppId, Error, Result};
use serde::{Deserialize, Serialize};
use tenancy::Tenancy;
use vault::Place;

use super::{
    Guest, Reply,
    cookies::{Cookie, Jar},
};

const LIFETIME: Duration = Duration::from_secs(600);
/// In bytes; three such texts fit into a cookie.
const LONGEST_TYPED: usize = 600;

/// Texts by the names of fields; never a password.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Flash {
    /// The path of the page that it is for.
    page: String,
    problems: BTreeMap<String, String>,
    typed: BTreeMap<String, String>,
}

impl Flash {
    pub fn new() -> Self {
        Self::default()
    }

    /// What is wrong with a field, in the app's words.
    #[must_use]
    pub fn problem(mut self, field: &str, text: impl Into<String>) -> Self {
        self.problems.insert(field.to_owned(), text.into());
        self
    }

    #[must_use]
    pub fn typed(mut self, field: &str, text: &str) -> Self {
        // Browsers drop cookies above 4 KiB, and a part of a text would be taken for what was meant.
        if text.len() <= LONGEST_TYPED {
            self.typed.insert(field.to_owned(), text.to_owned());
        }
        self
    }

    pub fn problem_of(&self, field: &str) -> Option<&str> {
        self.problems.get(field).map(String::as_str)
    }

    pub fn typed_in(&self, field: &str) -> Option<&str> {
        self.typed.get(field).map(String::as_str)
    }

    pub fn is_problem(&self) -> bool {
        !self.problems.is_empty()
    }
}

fn place(app: AppId) -> Place<'static> {
    Place { table: "cookies", column: "flash", row: "", app: Some(app) }
}

/// Leads back to a page of an app, which will show this.
pub fn lead_back(tenancy: &Tenancy, app: AppId, address: String, flash: Flash) -> Result<Reply> {
    let page = address.split('?').next().unwrap_or_default().to_owned();
    let json = serde_json::to_vec(&Flash { page, ..flash }).map_err(Error::internal)?;
    let sealed = tenancy.keyring.seal_for_page(&place(app), &json);
    let cookie = Jar::new(app, &tenancy.base_url).set(Cookie::Flash, &sealed, LIFETIME);
    Ok(Reply::see(address).with_cookie(cookie))
}

/// What was left in a browser for a page of an app; nothing when it was left for another.
pub fn left_in(tenancy: &Tenancy, app: AppId, headers: &HeaderMap, page: &str) -> Flash {
    let sealed = Jar::new(app, &tenancy.base_url).read(headers, Cookie::Flash);
    opened(tenancy, app, sealed, page)
}

/// The page with this will have shown it.
pub fn forgotten(tenancy: &Tenancy, app: AppId, headers: &HeaderMap, reply: Reply) -> Reply {
    let jar = Jar::new(app, &tenancy.base_url);
    if jar.read(headers, Cookie::Flash).is_some() { reply.with_cookie(jar.clear(Cookie::Flash)) } else { reply }
}

fn opened(tenancy: &Tenancy, app: AppId, sealed: Option<&str>, page: &str) -> Flash {
    let json = sealed.and_then(|sealed| tenancy.keyring.open_from_page(&place(app), sealed).ok());
    let flash = json.and_then(|json| serde_json::from_slice::<Flash>(json.expose()).ok());
    flash.filter(|flash| flash.page == page).unwrap_or_default()
}

/// Leads back to a page, which will show this.
pub(crate) fn back(guest: &Guest, address: String, flash: Flash) -> Result<Reply> {
    lead_back(&guest.identity.tenancy, guest.app.id, address, flash)
}

/// What was left for a page; nothing when it was left for another.
pub(crate) fn left_for(guest: &Guest, page: &str) -> Flash {
    opened(&guest.identity.tenancy, guest.app.id, guest.cookie(Cookie::Flash), page)
}
