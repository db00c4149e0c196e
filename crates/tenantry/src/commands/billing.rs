//! `tenantry billing simulate`.

use serde_json::json;

use super::{flags, print, text};
use crate::{api::Api, cli::BillingCommand};

pub async fn run(api: &Api, command: BillingCommand) -> Result<(), String> {
    match command {
        BillingCommand::Simulate { workspace, event, of, output } => {
            let path = format!("/admin/apps/{}/simulate", flags::app(api, &of, None).await?);
            let simulated = api.post(&path, &json!({ "workspaceId": workspace, "event": event })).await?;
            print(output, &simulated, |simulated| {
                let events = simulated["events"].as_array().into_iter().flatten().filter_map(|event| event.as_str());
                let events: Vec<&str> = events.collect();
                let fired = if events.is_empty() { "nothing".to_owned() } else { events.join(", ") };
                format!("The subscription is {}. Fired: {fired}.", text(simulated, "/subscription/status"))
            });
        }
    }
    Ok(())
}
