//! Our requests, as the other side checks them: posted ones by xmlsec1, the query's signature by OpenSSL.

use std::fs;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kernel::Secret;
use saml::{AuthnRequest, RequestHash, RequestKey};
use tempfile::TempDir;

use crate::setting::run;

const KINDS: [&[&str]; 4] = [
    &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
    &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
    &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"],
];

/// A new key of each kind: the folder with `private.pem` and `public.pem`, and the key with each hash.
fn keys() -> impl Iterator<Item = (TempDir, RequestKey)> {
    let hashes = [RequestHash::Sha256, RequestHash::Sha512];
    KINDS.into_iter().flat_map(move |kind| hashes.map(|hash| (kind, hash))).map(|(kind, hash)| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let made = run("openssl", &[&["genpkey", "-out", &path("private.pem")], kind].concat());
        assert!(made.0, "{}", made.1);
        let public = run("openssl", &["pkey", "-in", &path("private.pem"), "-pubout", "-out", &path("public.pem")]);
        assert!(public.0, "{}", public.1);
        let pem = Secret::new(fs::read_to_string(path("private.pem")).expect("a key"));
        let mut keys = RequestKey::all_from_pem(&pem, hash).expect("can be read");
        (folder, keys.pop().expect("a key"))
    })
}

fn request(login_url: &str) -> AuthnRequest<'_> {
    AuthnRequest {
        id: "_a1",
        issued_at: "2026-01-15T10:00:00Z".parse().expect("a time"),
        login_url,
        acs_url: "https://login.example/acs?a=1&b=\"2\"",
        entity_id: "https://login.example/<metadata>",
        force_authn: true,
        relay_state: "state+/=",
        login_hint: None,
    }
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        if *first == b'%' {
            let hex = std::str::from_utf8(&more[..2]).expect("two digits");
            bytes.push(u8::from_str_radix(hex, 16).expect("hexadecimal"));
            rest = &more[2..];
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    String::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn posted_requests_are_verified_by_another_program() {
    for (folder, key) in keys() {
        let form = request("https://idp.example/sso").form(Some(&key)).expect("a form");
        let path = folder.path().join("request.xml").to_string_lossy().into_owned();
        fs::write(&path, BASE64_STANDARD.decode(&form.saml_request).expect("base64")).expect("written");
        let public = folder.path().join("public.pem").to_string_lossy().into_owned();
        let id = "urn:oasis:names:tc:SAML:2.0:protocol:AuthnRequest";
        let verify = || run("xmlsec1", &["--verify", "--pubkey-pem", &public, "--id-attr:ID", id, &path]);
        let (good, said) = verify();
        assert!(good, "{said}");
        let altered = fs::read_to_string(&path).expect("read").replace("ForceAuthn=\"true\"", "ForceAuthn=\"false\"");
        fs::write(&path, altered).expect("written");
        assert!(!verify().0, "an altered request is not verified");
    }
}

#[test]
fn the_signature_of_a_redirect_is_over_the_query_as_it_stands() {
    for (folder, key) in keys() {
        let url = request("https://idp.example/sso?tenant=1").redirect(Some(&key)).expect("an address");
        let query = url.strip_prefix("https://idp.example/sso?tenant=1&").expect("the address keeps its query");
        let (signed, signature) = query.split_once("&Signature=").expect("is signed");
        let algorithm = unescaped(signed.split_once("&SigAlg=").expect("says how").1);
        let value = BASE64_STANDARD.decode(unescaped(signature)).expect("base64");
        let hash = algorithm.rsplit("-").next().expect("a hash").to_owned();
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        fs::write(path("signed"), signed).expect("written");
        fs::write(path("value"), if algorithm.contains("ecdsa") { asn1(&value) } else { value }).expect("written");
        let hash = format!("-{hash}");
        let arguments = ["dgst", &hash, "-verify", &path("public.pem"), "-signature", &path("value"), &path("signed")];
        let (good, said) = run("openssl", &arguments);
        assert!(good, "{algorithm}: {said}");
        assert!(unescaped(signed).contains("&RelayState=state+/=&"));
    }
}

/// Two numbers side by side as OpenSSL wants them.
fn asn1(value: &[u8]) -> Vec<u8> {
    let number = |bytes: &[u8]| {
        let mut digits: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
        if digits.first().is_none_or(|first| *first >= 0x80) {
            digits.insert(0, 0);
        }
        [&[2, digits.len() as u8], digits.as_slice()].concat()
    };
    let (r, s) = value.split_at(value.len() / 2);
    let body = [number(r), number(s)].concat();
    let length = if body.len() < 0x80 { vec![body.len() as u8] } else { vec![0x81, body.len() as u8] };
    [&[0x30], length.as_slice(), body.as_slice()].concat()
}

#[test]
fn the_request_in_an_address_is_deflated_and_says_what_was_asked() {
    let script = "import sys,zlib,base64,urllib.parse as u; q=u.parse_qs(u.urlsplit(sys.argv[1]).query); \
                  print(zlib.decompress(base64.b64decode(q['SAMLRequest'][0]), -15).decode())";
    for (login_url, joint) in
        [("https://idp.example/sso", "?"), ("https://idp.example/sso?", ""), ("https://idp.example/s?a=b#c", "&")]
    {
        let url = request(login_url).redirect(None).expect("an address");
        let begin = format!("{}{joint}SAMLRequest=", login_url.trim_end_matches("#c"));
        assert!(url.starts_with(&begin) && !url.contains("Signature="), "{url}");
        let (good, xml) = run("python3", &["-c", script, &url]);
        assert!(good, "{xml}");
        assert!(xml.contains("ID=\"_a1\"") && xml.contains("ForceAuthn=\"true\""), "{xml}");
        assert!(
            xml.contains("AssertionConsumerServiceURL=\"https://login.example/acs?a=1&amp;b=&quot;2&quot;\""),
            "{xml}"
        );
        assert!(xml.contains("<saml:Issuer>https://login.example/&lt;metadata&gt;</saml:Issuer>"), "{xml}");
    }
}

#[test]
fn a_hint_stands_in_the_address_beside_what_is_signed() {
    let hinted = AuthnRequest { login_hint: Some("ada+x@example.com"), ..request("https://idp.example/sso?a=b#c") };
    let address = hinted.redirect(None).expect("an address");
    assert!(address.starts_with("https://idp.example/sso?a=b&SAMLRequest="), "{address}");
    assert!(address.ends_with("&login_hint=ada%2Bx%40example.com"), "{address}");
    let plain = request("https://idp.example/sso?a=b#c").redirect(None).expect("an address");
    assert_eq!(address.strip_prefix(plain.as_str()), Some("&login_hint=ada%2Bx%40example.com"));
    let form = hinted.form(None).expect("a form");
    assert_eq!(form.action, "https://idp.example/sso?a=b&login_hint=ada%2Bx%40example.com");
}
