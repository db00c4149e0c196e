//! Identity providers that were not written here: pysaml2, which signs with xmlsec1, and samlify, which signs with JavaScript's own code. Both read
//! our metadata as it is and verify our requests; what they answer is accepted as far as it should be.

use serde_json::Value;
use testkit::{OnPort, Tokens, counterparts, facts::told_of_app, hosted::authorize, on_both_engines, tokens::exchange};

on_both_engines!(pysaml2_signs_somebody_in, samlify_signs_somebody_in);

fn texts(list: &Value, member: &str) -> Vec<String> {
    let entries = list.as_array().expect("a list").iter();
    entries.map(|entry| entry[member].as_str().unwrap_or_default().to_owned()).collect()
}

/// The steps at which answers were refused, oldest first.
async fn steps(server: &OnPort) -> Vec<String> {
    texts(&Value::Array(told_of_app(&server.app, "login.failed").await), "step")
}

async fn pysaml2_signs_somebody_in(server: OnPort) {
    let (app, email) = (&server.app, "grace@acme.example");
    let mut workspaces = Vec::new();
    for name in ["acme", "bolt", "corp"] {
        workspaces.push(app.workspace(name).await.id.to_string());
    }
    let variables = [
        ("BASE_URL", server.base_url.clone()),
        ("API_KEY", app.key().header_sent("x-api-key")),
        ("WORKSPACES", workspaces.join(" ")),
        ("EMAIL", email.to_owned()),
        ("AUTHORIZE", authorize(app, &[])),
    ];
    let tried = counterparts::python_with("saml.py", &variables).await;
    let accepted = tried["accepted"].as_array().expect("a list");
    assert_eq!(accepted.len(), 9, "{tried}");
    for one in accepted {
        let code = one["code"].as_str().unwrap_or_else(|| panic!("{one} is refused: {tried}"));
        let tokens = Tokens::of(&exchange(app, code, None).await.expect(200));
        let caller = app.anon().header("authorization", &format!("Bearer {}", tokens.access));
        assert_eq!(caller.get("/auth/userinfo").await.expect(200).text("/email"), email, "{one}");
    }
    let members = app.key().header("x-tenant-id", &workspaces[0]).get("/account/tenant/user").await.expect(200).json();
    let names = texts(&members, "fullName");
    assert!(names.contains(&"Grace Hopper".to_owned()), "{names:?}");
    let refused = tried["refused"].as_array().expect("a list");
    assert!(refused.iter().all(|one| one["status"] == 400 && one["code"].is_null()), "{tried}");
    assert_eq!(steps(&server).await, ["signature", "signature", "decryption", "algorithms"], "{tried}");
}

async fn samlify_signs_somebody_in(server: OnPort) {
    counterparts::run(&server, "saml.mjs").await;
    assert_eq!(steps(&server).await, ["decryption", "signature", "entry", "decryption"]);
}
