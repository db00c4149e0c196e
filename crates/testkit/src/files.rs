//! Uploads, as a backend prepares them and a browser posts them.

use http::Method;
use serde_json::{Map, Value, json};

use crate::{Answer, Caller, TestApp};

/// The fields of the form for a file.
pub async fn prepare(caller: &Caller, name: &str, kind: &str) -> Map<String, Value> {
    let body = json!({ "fileName": name, "contentType": kind });
    let form = caller.post("/account/tenant/upload/prepare", body).await.expect(200);
    assert_eq!(form.text("/url"), "http://tenantry.test/cloud-views/files");
    form.at("/fields").as_object().expect("fields").clone()
}

pub fn part(name: &str, value: &[u8], file: bool) -> Vec<u8> {
    let named = if file { "; filename=\"x.bin\"\r\nContent-Type: application/octet-stream" } else { "" };
    let head = format!("--b0undary\r\nContent-Disposition: form-data; name=\"{name}\"{named}\r\n\r\n");
    [head.as_bytes(), value, b"\r\n"].concat()
}

pub async fn send(app: &TestApp, parts: &[Vec<u8>]) -> Answer {
    let body = [parts.concat(), b"--b0undary--\r\n".to_vec()].concat();
    let caller = app.anon().header("content-type", "multipart/form-data; boundary=b0undary");
    caller.send(Method::POST, "/cloud-views/files", body).await
}

pub fn fields(fields: &Map<String, Value>) -> Vec<Vec<u8>> {
    fields.iter().map(|(name, value)| part(name, value.as_str().expect("a text").as_bytes(), false)).collect()
}

/// Posts a form with a file of these bytes.
pub async fn post(app: &TestApp, form: &Map<String, Value>, bytes: &[u8]) -> Answer {
    send(app, &[fields(form), vec![part("file", bytes, true)]].concat()).await
}
