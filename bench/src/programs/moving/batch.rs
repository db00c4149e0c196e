//! The batch that is imported.

use serde_json::{Value, json};

fn person(workspace: usize, number: usize) -> Value {
    json!({
        "username": format!("u{number}@w{workspace}.example"), "firstName": "Ada", "lastName": "Lovelace",
        "emailVerified": true,
    })
}

fn item(workspace: usize, people: usize) -> Value {
    json!({
        "tenant": { "name": format!("Workspace {workspace}"), "owner": person(workspace, 0) },
        "users": (1..people).map(|number| person(workspace, number)).collect::<Vec<_>>(),
    })
}

/// So many workspaces with so many people each.
pub fn body(workspaces: usize, people: usize) -> String {
    Value::from_iter((0..workspaces).map(|workspace| item(workspace, people))).to_string()
}
