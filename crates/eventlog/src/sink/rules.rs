//! What a sink may be. Pure.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use kernel::{Label, Problems, Secret, Timestamp, WebUrl, text_types};
use schemars::JsonSchema;
use serde::Deserialize;
use spine::outbound::Url;
use web::Validate;

use super::SinkKind;

/// What every request says itself.
const OWN_HEADERS: [&str; 5] = ["content-type", "content-length", "host", "transfer-encoding", "idempotency-key"];
const MOST_HEADERS: usize = 20;
pub(super) const DEFAULT_TABLE: &str = "events";

text_types! {
    /// A table of ClickHouse, which stands in a statement as it is.
    SinkTable {
        "maxLength": 128,
        "pattern": r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$",
        "x-message": "must be a name like events or database.events",
    }
}

/// The body of `PUT /admin/apps/{app_id}/events/sink`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct NewSink {
    pub(super) kind: SinkKind,
    /// Of ClickHouse's HTTP interface, or of whoever takes the lines.
    pub(super) url: WebUrl,
    /// Of ClickHouse, with or without its database; `events` unless given.
    pub(super) table: Option<SinkTable>,
    /// Sent along, such as credentials; never shown again.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Secret<String>>,
    /// Names of events that are sent; a `*` at the end stands for any ending. All unless given.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub(super) events: Vec<Label>,
    /// Events from then on are sent, also those that are there already. Now unless given.
    pub(super) since: Option<Timestamp>,
}

impl Validate for NewSink {
    fn validate(&self, problems: &mut Problems) {
        let has_tables = self.kind == SinkKind::ClickHouse;
        problems.check("table", has_tables || self.table.is_none(), "is for clickhouse only");
        problems.check("headers", self.headers.len() <= MOST_HEADERS, "must not have more than 20 members");
        for (name, value) in &self.headers {
            let field = format!("headers.{name}");
            let is_name = HeaderName::try_from(name.as_str()).is_ok_and(|name| !OWN_HEADERS.contains(&name.as_str()));
            problems.check(&field, is_name, "must be the name of a header that is not set by the service itself");
            let is_value = HeaderValue::try_from(value.expose().as_str()).is_ok();
            problems.check(&field, is_value, "must be a header's value");
        }
    }
}

/// The address without user, password and query, where credentials stand.
pub(super) fn shown(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else { return String::new() };
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(body: &str) -> Vec<String> {
        let read = web::from_json::<NewSink>(body.as_bytes());
        read.err().iter().flat_map(|error| error.details()).map(|problem| problem.field.clone()).collect()
    }

    #[test]
    fn a_sink_is_checked_member_by_member() {
        assert_eq!(problems(r#"{ "kind": "http", "url": "https://a.example" }"#), Vec::<String>::new());
        assert_eq!(problems(r#"{ "kind": "kafka", "url": "ftp://a" }"#), ["kind", "url"]);
        assert_eq!(problems(r#"{ "kind": "http", "url": "https://a.example", "table": "t" }"#), ["table"]);
        for wrong in ["t; DROP", "a.b.c", "", "1t", "a."] {
            let body = format!(r#"{{ "kind": "clickhouse", "url": "https://a.example", "table": "{wrong}" }}"#);
            assert_eq!(problems(&body), ["table"], "{wrong}");
        }
        let headers =
            r#"{ "kind": "http", "url": "https://a.example", "headers": { "host": "x", "a b": "x", "x": "a\nb" } }"#;
        assert_eq!(problems(headers), ["headers.a b", "headers.host", "headers.x"]);
    }

    #[test]
    fn nothing_secret_of_an_address_is_shown() {
        assert_eq!(shown("https://u:p@ch.example:8443/x?password=p"), "https://ch.example:8443/x");
    }
}
