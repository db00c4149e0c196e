//! `tenantry config show`.

use serde_json::{Value, json};

use super::{print, table};
use crate::{cli::Output, config::Values};

pub fn show(values: &Values, output: Output) {
    let shown: Vec<Value> = values
        .shown()
        .map(|(setting, value, origin)| json!({ "name": setting.name, "value": value, "from": origin }))
        .collect();
    print(output, &Value::from(shown), |_| {
        let rows: Vec<Vec<String>> =
            values.shown().map(|(setting, value, origin)| vec![setting.name.to_owned(), value, origin]).collect();
        table(&["SETTING", "VALUE", "FROM"], &rows)
    });
}
