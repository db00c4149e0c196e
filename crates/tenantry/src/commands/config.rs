//! `tenantry config show`.

use serde_json::{Value, json};

use super::{print, table};
use crate::{
    cli::Output,
    config::{Config, Values},
};

/// What a default comes to is shown as far as the configuration is valid.
pub fn show(values: &Values, config: Option<&Config>, output: Output) {
    let shown: Vec<(&str, String, String)> = values
        .shown()
        .map(|(setting, value, origin)| {
            let comes_to = config.filter(|_| origin == "default").and_then(|config| in_force(setting.name, config));
            (setting.name, comes_to.unwrap_or(value), origin)
        })
        .collect();
    let answer: Vec<Value> =
        shown.iter().map(|(name, value, origin)| json!({ "name": name, "value": value, "from": origin })).collect();
    print(output, &Value::from(answer), |_| {
        let rows: Vec<Vec<String>> =
            shown.iter().map(|(name, value, origin)| vec![(*name).to_owned(), value.clone(), origin.clone()]).collect();
        table(&["SETTING", "VALUE", "FROM"], &rows)
    });
}

/// The value of a setting whose default follows from others.
fn in_force(name: &str, config: &Config) -> Option<String> {
    let kept = |file: &str| format!("generated into {}", config.data_dir.join(file).display());
    match name {
        "base_url" => Some(config.base_url.clone()),
        "database_url" => Some(config.database.to_string()),
        "operator_key" => Some(kept("operator.key")),
        "master_key" => Some(kept("master.key")),
        _ => None,
    }
}
