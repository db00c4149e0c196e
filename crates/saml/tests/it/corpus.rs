//! Every file of the corpus is refused by the step that its README names, or accepted.

use std::{collections::BTreeMap, fs};

use saml::Step;

use crate::setting::{Connection, file, folder, run};

/// File and step, from the README's table.
fn rows() -> BTreeMap<String, String> {
    let readme = file("README.md");
    let rows = readme.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        Some((cells.next()?.trim_end_matches('`').to_owned(), cells.next()?.to_owned()))
    });
    rows.collect()
}

fn outcome(name: &str) -> String {
    match Connection::new().judge(file(name).as_bytes()) {
        Ok(_) => "accepted".to_owned(),
        Err(refusal) => refusal.step.name().to_owned(),
    }
}

#[test]
fn each_file_is_refused_by_its_own_step() {
    let rows = rows();
    assert!(rows.len() > 130, "the table was read: {}", rows.len());
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(name, step)| {
            let outcome = outcome(name);
            (outcome != *step).then(|| format!("{name}: {outcome}, not {step}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_file_has_a_row_and_every_step_a_file() {
    let rows = rows();
    for entry in fs::read_dir(folder()).expect("the corpus") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        assert!(!name.ends_with(".xml") || rows.contains_key(&name), "{name} has no row");
    }
    for step in Step::ALL.into_iter().filter(|step| *step != Step::Encoding) {
        assert!(rows.values().any(|named| named == step.name()), "no file for {}", step.name());
    }
}

#[test]
fn what_is_accepted_says_what_was_signed() {
    let connection = Connection::new();
    for name in rows().into_iter().filter(|(_, step)| step == "accepted").map(|(name, _)| name) {
        let said = connection.judge(file(&name).as_bytes()).expect("accepted");
        if name == "no-address.xml" {
            assert_eq!((said.email, said.subject.value.as_str()), (None, "ann"));
            continue;
        }
        assert_eq!(said.email.as_deref(), Some("ann@acme.example"), "{name}");
        assert_eq!((said.first_name.as_deref(), said.last_name.as_deref()), (Some("Ann"), Some("Lee")), "{name}");
        assert_eq!(said.authenticated_at.to_string(), "2026-01-15T09:58:00.000Z", "{name}");
        assert_eq!(said.two_factors(), name == "mfa-refeds.xml", "{name}");
        let end = (name == "time-session.xml").then(|| "2026-01-15T11:00:00Z".parse().expect("a time"));
        assert_eq!(said.session_ends_at, end, "{name}");
    }
}

#[test]
fn another_verifier_agrees_on_what_is_accepted() {
    let verified = |name: &str, certificate: &str| {
        let (file, certificate) = (folder().join(name), folder().join(certificate));
        let ids =
            ["assertion:Assertion", "protocol:Response"].map(|name| format!("urn:oasis:names:tc:SAML:2.0:{name}"));
        run(
            "xmlsec1",
            &[
                "--verify",
                "--pubkey-cert-pem",
                &certificate.to_string_lossy(),
                "--id-attr:ID",
                &ids[0],
                "--id-attr:ID",
                &ids[1],
                &file.to_string_lossy(),
            ],
        )
    };
    let signed = rows().into_iter().filter(|(name, step)| step == "accepted" && name != "good-encrypted-gcm.xml");
    for (name, _) in signed {
        let certificate = match name.as_str() {
            "good-ec-p256.xml" => "ec.pem",
            "good-ec-p384-sha512.xml" => "ec384.pem",
            _ => "idp.pem",
        };
        let (good, said) = verified(&name, certificate);
        assert!(good, "{name}: {said}");
    }
    assert!(!verified("altered-nameid.xml", "idp.pem").0, "the other verifier does look");
}

#[test]
fn only_the_connections_own_certificates_verify() {
    let response = file("good-assertion-signed.xml");
    for trusted in [&["other.pem"][..], &["ec.pem", "sp.pem"]] {
        let refusal = Connection::trusting(trusted).judge(response.as_bytes()).expect_err("not theirs");
        assert_eq!(refusal.step, Step::Signature);
    }
    assert!(Connection::trusting(&["other.pem", "idp.pem"]).judge(response.as_bytes()).is_ok());
}

#[test]
fn a_login_may_ask_for_a_fresh_sign_in() {
    let response = file("good-response-signed.xml");
    let mut connection = Connection::new();
    for (since, fresh) in [("2026-01-15T09:59:00Z", true), ("2026-01-15T09:59:00.001Z", false)] {
        connection.authenticated_since = Some(since.parse().expect("a time"));
        assert_eq!(connection.judge(response.as_bytes()).is_ok(), fresh, "{since}");
    }
}

#[test]
fn what_is_not_a_message_is_refused_unread() {
    let connection = Connection::new();
    let long = "A".repeat(saml::MAX_ENCODED + 4);
    for encoded in ["", " \n", "?", "AAA", "////", &long] {
        assert_eq!(connection.judge_encoded(encoded).expect_err("no message").step, Step::Encoding, "{encoded:.9}");
    }
}
