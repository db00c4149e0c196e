//! Metadata, ours and theirs.

use kernel::Secret;
use saml::{
    Certificates, RequestHash, RequestKey,
    metadata::{ServiceProvider, read, self_signed},
};

use crate::setting::{der, file, run};

fn theirs(services: &str) -> String {
    let certificate = file("idp.pem").lines().filter(|line| !line.starts_with('-')).collect::<Vec<_>>().join("\n");
    format!(
        "<?xml version=\"1.0\"?><!-- made by hand --><EntityDescriptor xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\" entityID=\"https://idp.example/\">\
         <IDPSSODescriptor protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\"><KeyDescriptor use=\"signing\">\
         <KeyInfo xmlns=\"http://www.w3.org/2000/09/xmldsig#\"><X509Data><X509Certificate>{certificate}</X509Certificate></X509Data></KeyInfo>\
         </KeyDescriptor><KeyDescriptor use=\"encryption\"/>{services}</IDPSSODescriptor></EntityDescriptor>"
    )
}

fn service(binding: &str) -> String {
    format!(
        "<SingleSignOnService Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:{binding}\" Location=\"https://idp.example/{binding}\"/>"
    )
}

#[test]
fn metadata_fills_in_a_connection() {
    let both = read(&theirs(&(service("HTTP-POST") + &service("HTTP-Redirect")))).expect("metadata");
    assert_eq!((both.entity_id.as_str(), both.posts), ("https://idp.example/", false));
    assert_eq!(both.login_url, "https://idp.example/HTTP-Redirect");
    assert_eq!(both.certificates.trim(), file("idp.pem").trim());
    assert!(read(&theirs(&service("HTTP-POST"))).expect("metadata").posts);
}

#[test]
fn metadata_that_cannot_be_used_says_why() {
    let good = theirs(&service("HTTP-POST"));
    for (bad, why) in [
        (String::new(), "is not well-formed XML, or nests too deeply"),
        (theirs(&service("SOAP")), "offers sign-in neither by HTTP-Redirect nor by HTTP-POST"),
        (good.replace("use=\"signing\"", "use=\"encryption\""), "has no signing certificate"),
        (good.replace("EntityDescriptor", "EntitiesDescriptor"), "is not of one entity (EntityDescriptor)"),
        (good.replace("entityID", "entityId"), "has no entityID"),
        (format!("<!DOCTYPE a>{good}"), "has a DOCTYPE, a comment or a CDATA section"),
        (good.replace("-->", "--"), "has a comment that does not end"),
    ] {
        assert_eq!(read(&bad).expect_err("unusable").0, why);
    }
}

#[test]
fn our_certificates_are_genuine_and_our_metadata_shows_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    for kind in [&["-algorithm", "RSA"][..], &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]] {
        assert!(run("openssl", &[&["genpkey", "-out", &path("key.pem")], kind].concat()).0);
        let pem = Secret::new(std::fs::read_to_string(path("key.pem")).expect("a key"));
        let key = RequestKey::all_from_pem(&pem, RequestHash::Sha256).expect("can be read").pop().expect("a key");
        let since = "2026-01-15T10:00:00Z".parse().expect("a time");
        let certificate = self_signed(&key, "login.example", since).expect("a certificate");
        std::fs::write(path("certificate.der"), &certificate).expect("written");
        let convert = ["x509", "-inform", "DER", "-in", &path("certificate.der"), "-out", &path("certificate.pem")];
        assert!(run("openssl", &convert).0);
        let (good, said) = run(
            "openssl",
            &[
                "verify",
                "-check_ss_sig",
                "-attime",
                "1768471300",
                "-CAfile",
                &path("certificate.pem"),
                &path("certificate.pem"),
            ],
        );
        assert!(good, "{said}");
        let shown =
            Certificates::describe(&std::fs::read_to_string(path("certificate.pem")).expect("PEM")).expect("reads");
        assert_eq!((shown[0].subject.as_str(), shown[0].valid_from), ("CN=login.example", since));
        let metadata = ServiceProvider {
            entity_id: "https://login.example/?a&b",
            acs_url: "https://login.example/acs",
            signing_certificates: &[certificate],
            signs_requests: true,
            encryption_certificates: &[der(&file("sp.pem"))],
        };
        let xml = metadata.xml();
        assert!(
            xml.contains("entityID=\"https://login.example/?a&amp;b\"") && xml.contains("AuthnRequestsSigned=\"true\"")
        );
        assert_eq!(xml.matches("<md:KeyDescriptor ").count(), 2, "{xml}");
    }
}
