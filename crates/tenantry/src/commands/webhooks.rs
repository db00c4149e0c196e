//! `tenantry webhook test|deliveries|replay|recover|listen`.

use kernel::{Clock, Secret};
use serde_json::{Value, json};
use signals::secrets::{SigningSecret, headers};

use super::{flags, print, say, table, text};
use crate::{
    api::Api,
    cli::{OfApp, Output, WebhookCommand},
};

pub async fn run(api: &Api, command: WebhookCommand) -> Result<(), String> {
    match command {
        WebhookCommand::Test { of, event_type, to, output } => {
            let path = path(api, &of, "/test").await?;
            let mut body = json!({});
            if let Some(event_type) = event_type {
                body["type"] = event_type.into();
            }
            if let Some(to) = to {
                body["url"] = to.into();
            }
            let outcome = api.post(&path, &body).await?;
            print(output, &outcome, tested);
            if outcome["delivered"] == false {
                return Err("The sample was not delivered.".into());
            }
        }
        WebhookCommand::Deliveries { of, status, limit, output } => {
            let status = status.map(|status| format!("&status={status}")).unwrap_or_default();
            let path = path(api, &of, &format!("/deliveries?limit={limit}{status}")).await?;
            let listed = api.get(&path).await?;
            print(output, &listed, |listed| {
                let rows: Vec<Vec<String>> = listed.as_array().into_iter().flatten().map(row).collect();
                table(&["ID", "TYPE", "STATUS", "ATTEMPT", "CODE", "CREATED", "ERROR"], &rows)
            });
        }
        WebhookCommand::Replay { of, delivery, output } => {
            let path = path(api, &of, &format!("/deliveries/{delivery}/replay")).await?;
            let replayed = api.post(&path, &json!({})).await?;
            print(output, &replayed, |replayed| format!("Sent again as {}.", text(replayed, "/deliveryId")));
        }
        WebhookCommand::Recover { of, since, until, types, output } => {
            let path = path(api, &of, "/recover").await?;
            let mut body = json!({ "since": since });
            if let Some(until) = until {
                body["until"] = until.into();
            }
            if !types.is_empty() {
                body["types"] = json!(types);
            }
            let recovered = api.post(&path, &body).await?;
            print(output, &recovered, |recovered| format!("{} deliveries are sent again.", recovered["replayed"]));
        }
        WebhookCommand::Listen { of, forward, output } => listen(api, &of, forward.as_deref(), output).await?,
    }
    Ok(())
}

async fn path(api: &Api, of: &OfApp, rest: &str) -> Result<String, String> {
    Ok(format!("/admin/apps/{}/webhook{rest}", flags::app(api, of, None).await?))
}

fn tested(outcome: &Value) -> String {
    let code = outcome["responseCode"].as_i64().map_or_else(|| "no answer".to_owned(), |code| code.to_string());
    match outcome["error"].as_str() {
        None => format!("Delivered: {code} after {} ms.", outcome["latencyMs"]),
        Some(error) => format!("Not delivered ({code} after {} ms): {error}", outcome["latencyMs"]),
    }
}

fn row(delivery: &Value) -> Vec<String> {
    let number = |name: &str| delivery[name].as_i64().map(|number| number.to_string()).unwrap_or_default();
    vec![
        text(delivery, "/id").to_owned(),
        text(delivery, "/eventType").to_owned(),
        text(delivery, "/status").to_owned(),
        number("attempt"),
        number("responseCode"),
        text(delivery, "/createdAt").to_owned(),
        text(delivery, "/lastError").to_owned(),
    ]
}

/// Until the server ends the stream, or somebody this.
async fn listen(api: &Api, of: &OfApp, forward: Option<&str>, output: Output) -> Result<(), String> {
    if matches!(api, Api::Local(_)) {
        return Err("There is no running server here to listen to. Start one, or name it with --url.".into());
    }
    let base = path(api, of, "").await?;
    let secret = text(&api.get(&format!("{base}/secret")).await?, "/secret").to_owned();
    let secret = SigningSecret::new(&Secret::new(secret)).map_err(|error| error.public().to_owned())?;
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let client = client.timeout(std::time::Duration::from_secs(10)).build().map_err(|error| error.to_string())?;
    let mut events = api.watch(&format!("{base}/stream")).await?;
    if !output.json {
        eprintln!("Listening. Press Ctrl-C to stop.");
    }
    loop {
        let event = events.next().await?;
        let outcome = outcome(&client, &secret, &event, forward).await?;
        if say(if output.json { event } else { outcome }).is_err() {
            return Ok(());
        }
    }
}

/// Sends the event on where that is wanted, and says in a line what it is and what became of it.
async fn outcome(
    client: &reqwest::Client,
    secret: &SigningSecret,
    event: &str,
    forward: Option<&str>,
) -> Result<String, String> {
    let read: Value = serde_json::from_str(event).map_err(|error| format!("The event is not JSON: {error}"))?;
    let (id, event_type) = (text(&read, "/id"), text(&read, "/type"));
    let outcome = match forward {
        None => String::new(),
        Some(url) => {
            let signed = headers(id, event_type, event, Clock::system().now(), std::slice::from_ref(secret));
            let signed = signed.map_err(|error| error.public().to_owned())?;
            match client.post(url).headers(signed).body(event.to_owned()).send().await {
                Ok(answer) => format!("  {}", answer.status().as_u16()),
                Err(error) => format!("  {}", error.without_url()),
            }
        }
    };
    Ok(format!("{event_type:28}  {id}{outcome}"))
}
