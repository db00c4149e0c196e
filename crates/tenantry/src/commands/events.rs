//! `tenantry events tail|export|sink` and `tenantry audit verify`.

use serde_json::Value;

use super::{
    event_export::{self, Target},
    flags, print, say, text,
};
use crate::{
    api::Api,
    cli::{AuditCommand, EventsCommand, OfApp, Output, SinkCommand},
};

pub async fn run(api: &Api, command: EventsCommand) -> Result<(), String> {
    match command {
        EventsCommand::Tail { of, event, output } => tail(api, &of, event, output).await,
        EventsCommand::Export { of, file, format, from, to, output } => {
            let query = query(&[("format", Some(format.clone())), ("from", from), ("to", to)]);
            let path = format!("{}?{query}", path(api, &of, "/export").await?);
            let target = if format == "parquet" { Target::Folder(file) } else { Target::File(file) };
            event_export::run(api, &path, &target, output).await
        }
        // Needs no server: it was printed before.
        EventsCommand::Sink(SinkCommand::Ddl { .. }) => Ok(()),
        EventsCommand::Sink(SinkCommand::Show { of, output }) => {
            let sink = api.get(&path(api, &of, "/sink").await?).await?;
            print(output, &sink, shown_sink);
            Ok(())
        }
    }
}

/// Whether everything is well.
pub async fn audit(api: &Api, command: AuditCommand) -> Result<bool, String> {
    let AuditCommand::Verify { of, output } = command;
    verify(api, &of, output).await
}

fn shown_sink(sink: &Value) -> String {
    let state = match sink["lastError"].as_str() {
        Some(error) => format!("{} attempts have failed since the last success: {error}", sink["failures"]),
        None if sink["backfilling"] == true => "Older events are being sent.".to_owned(),
        None => "Events arrive.".to_owned(),
    };
    format!("{} {}\n{state}", text(sink, "/kind"), text(sink, "/url"))
}

async fn path(api: &Api, of: &OfApp, rest: &str) -> Result<String, String> {
    Ok(format!("/admin/apps/{}/events{rest}", flags::app(api, of, None).await?))
}

/// What is given, as a query.
fn query(members: &[(&str, Option<String>)]) -> String {
    let given = members.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
    let address = reqwest::Url::parse_with_params("http://localhost/", given);
    address.ok().and_then(|address| address.query().map(str::to_owned)).unwrap_or_default()
}

/// Until the server ends the stream, or somebody this.
async fn tail(api: &Api, of: &OfApp, event: Option<String>, output: Output) -> Result<(), String> {
    if matches!(api, Api::Local(_)) {
        return Err("There is no running server here to listen to. Start one, or name it with --url.".into());
    }
    let query = query(&[("event", event)]);
    let mut events = api.watch(&format!("{}?{query}", path(api, of, "/tail").await?)).await?;
    if !output.json {
        eprintln!("Watching. Press Ctrl-C to stop.");
    }
    loop {
        let event = events.next().await?;
        if say(if output.json { event } else { line(&event) }).is_err() {
            return Ok(());
        }
    }
}

fn line(event: &str) -> String {
    let read: Value = serde_json::from_str(event).unwrap_or_default();
    format!("{}  {:28}  {}", text(&read, "/timestamp"), text(&read, "/eventName"), read["parameters"])
}

async fn verify(api: &Api, of: &OfApp, output: Output) -> Result<bool, String> {
    let verdict = api.get(&path(api, of, "/audit/verify").await?).await?;
    print(output, &verdict, |verdict| match verdict["ok"] == true {
        true => format!("{} entries are as they were written.", verdict["entries"]),
        false => match text(verdict, "/firstBad") {
            "" => format!("After {} entries the chain is broken.", verdict["entries"]),
            bad => {
                format!("{bad} was changed, removed or put in, after {} entries that are right.", verdict["entries"])
            }
        },
    });
    Ok(verdict["ok"] == true)
}
