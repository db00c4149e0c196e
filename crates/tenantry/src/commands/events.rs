//! `tenantry events tail|export|sink` and `tenantry audit verify`.

use std::path::Path;

use serde_json::Value;
use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _};

use super::{flags, print, say, text};
use crate::{
    api::Api,
    cli::{AuditCommand, EventsCommand, OfApp, Output, SinkCommand},
};

pub async fn run(api: &Api, command: EventsCommand) -> Result<(), String> {
    match command {
        EventsCommand::Tail { of, event, output } => tail(api, &of, event, output).await,
        EventsCommand::Export { of, file, format, from, to } => {
            let query = query(&[("format", Some(format)), ("from", from), ("to", to)]);
            export(api, &format!("{}?{query}", path(api, &of, "/export").await?), &file).await
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

/// Part after part. Beside the file stands a note of how far it is, by which an interrupted export is resumed.
async fn export(api: &Api, path: &str, file: &Path) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("Cannot write {}: {error}", file.display());
    let note = file.with_added_extension("part");
    let mut place = match tokio::fs::read_to_string(&note).await {
        Ok(text) => Place::parse(&text).ok_or_else(|| format!("{} is not the note of an export.", note.display()))?,
        Err(_) => Place::default(),
    };
    let mut options = tokio::fs::File::options();
    // For the owner's eyes only: events hold what people did.
    options.write(true).mode(0o600);
    let mut target = match place.cursor {
        Some(_) => options.open(file).await,
        None => options.create_new(true).open(file).await,
    }
    .map_err(cannot)?;
    // What was written after the last note is written again.
    target.set_len(place.bytes).await.map_err(cannot)?;
    target.seek(std::io::SeekFrom::End(0)).await.map_err(cannot)?;
    loop {
        let asked = match &place.cursor {
            Some(cursor) => format!("{path}&cursor={cursor}"),
            None => path.to_owned(),
        };
        let (part, next) = api.part(&asked).await?;
        target.write_all(&part).await.map_err(cannot)?;
        target.sync_all().await.map_err(cannot)?;
        let bytes = place.bytes + u64::try_from(part.len()).unwrap_or(u64::MAX);
        eprintln!("{bytes} bytes");
        place = Place { bytes, cursor: next };
        match &place.cursor {
            Some(cursor) => tokio::fs::write(&note, format!("{bytes} {cursor}")).await.map_err(cannot)?,
            None => break,
        }
    }
    let _ = tokio::fs::remove_file(&note).await;
    Ok(())
}

/// How far an export is.
#[derive(Default)]
struct Place {
    bytes: u64,
    cursor: Option<String>,
}

impl Place {
    fn parse(text: &str) -> Option<Self> {
        let (bytes, cursor) = text.split_once(' ')?;
        Some(Self { bytes: bytes.parse().ok()?, cursor: Some(cursor.trim().to_owned()) })
    }
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
