//! What is sent: one event in its envelope. It is serialised once; the bytes that were stored are those that are sent and
//! signed at every attempt.

use kernel::{AppId, Error, Result, TenantId, Timestamp, id_kinds};
use serde::Serialize;
use serde_json::Value;
use spine::{Fact, outbox::webhook_event};

id_kinds! {
    /// A repeated event.
    ReplayedEventId(ReplayedEvent) = "evt_replay";
    /// A sample that was sent to try a receiver.
    TestEventId(TestEvent) = "evt_test";
}

/// An event as receivers get it.
#[derive(Clone, Debug, Serialize)]
pub struct Envelope<'a> {
    pub id: String,
    #[serde(rename = "type")]
    pub event_type: &'a str,
    /// Unix seconds.
    pub created: i64,
    pub app_id: AppId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<TenantId>,
    pub data: &'a Value,
}

impl<'a> Envelope<'a> {
    /// The event that a fact of an app is. Its id follows from the fact's, so that it has one, however often it is read.
    pub fn of(fact: &'a Fact, app: AppId) -> Self {
        Self {
            id: webhook_event(fact.id).to_string(),
            event_type: &fact.kind,
            created: fact.at.as_seconds(),
            app_id: app,
            workspace_id: fact.tenant,
            data: &fact.data,
        }
    }

    /// A sample.
    pub fn sample(id: String, name: &'a str, at: Timestamp, app: AppId, workspace: TenantId, data: &'a Value) -> Self {
        Self { id, event_type: name, created: at.as_seconds(), app_id: app, workspace_id: Some(workspace), data }
    }

    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }
}

/// The same event under another id: everything else stays as it was.
pub(crate) fn renamed(envelope: &str, id: &str) -> Result<String> {
    let mut envelope: Value = serde_json::from_str(envelope).map_err(Error::internal)?;
    envelope["id"] = id.into();
    serde_json::to_string(&envelope).map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_differs_in_its_id_alone() {
        let sent = r#"{"id":"evt_1","type":"tenant.created","created":5,"app_id":"a","data":{"z":1.10,"a":"é"}}"#;
        let again = renamed(sent, "evt_replay_2").expect("it is JSON");
        assert_eq!(again, sent.replace("evt_1", "evt_replay_2").replace("1.10", "1.1"));
    }
}
