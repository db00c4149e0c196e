#![expect(clippy::disallowed_types, reason = "what others sign with randomness of their own")]

use aws_lc_rs::{
    hmac,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
        RsaEncoding, RsaKeyPair,
    },
};
use serde_json::{Value, json};

use super::*;

struct Signer {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    ed: Ed25519KeyPair,
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    fn new() -> Self {
        Self {
            rsa: RsaKeyPair::generate(KeySize::Rsa2048).expect("a key"),
            ec: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key"),
            ed: Ed25519KeyPair::generate().expect("a key"),
        }
    }

    fn jwks(&self) -> Value {
        let (n, e) = (self.rsa.public_key().modulus(), self.rsa.public_key().exponent());
        let (n, e) = (encoded(n.big_endian_without_leading_zero()), encoded(e.big_endian_without_leading_zero()));
        let point = self.ec.public_key().as_ref();
        json!({ "keys": [
            { "kty": "RSA", "kid": "rsa", "use": "sig", "n": n, "e": e },
            { "kty": "EC", "kid": "ec", "crv": "P-256", "x": encoded(&point[1..33]), "y": encoded(&point[33..]) },
            { "kty": "OKP", "kid": "ed", "crv": "Ed25519", "x": encoded(self.ed.public_key()) },
        ] })
    }

    fn sign(&self, header: &Value, payload: &Value) -> String {
        let input = format!("{}.{}", encoded(header.to_string()), encoded(payload.to_string()));
        let rsa = |padding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public_modulus_len()];
            self.rsa.sign(padding, &SystemRandom::new(), input.as_bytes(), &mut signature).expect("signs");
            signature
        };
        let signature = match header["alg"].as_str().unwrap_or_default() {
            "RS256" => rsa(&RSA_PKCS1_SHA256),
            "PS256" => rsa(&RSA_PSS_SHA256),
            "ES256" => self.ec.sign(&SystemRandom::new(), input.as_bytes()).expect("signs").as_ref().to_vec(),
            "EdDSA" => self.ed.sign(input.as_bytes()).as_ref().to_vec(),
            "HS256" => {
                let public = self.jwks()["keys"][0]["n"].to_string();
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, public.as_bytes()), input.as_bytes()).as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{input}.{}", encoded(signature))
    }
}

fn verified(keys: &Value, token: &str) -> Result<Value, ForeignRefusal> {
    ForeignKeys::from_json(keys.to_string().as_bytes()).expect("a set").verify(token)
}

#[test]
fn each_algorithm_is_verified_by_its_own_kind_of_key() {
    let (signer, claims) = (Signer::new(), json!({ "sub": "1" }));
    let jwks = signer.jwks();
    for (alg, kid) in [("RS256", "rsa"), ("PS256", "rsa"), ("ES256", "ec"), ("EdDSA", "ed")] {
        let token = signer.sign(&json!({ "alg": alg, "kid": kid }), &claims);
        assert_eq!(verified(&jwks, &token), Ok(claims.clone()), "{alg}");
        let unnamed = signer.sign(&json!({ "alg": alg }), &claims);
        assert_eq!(verified(&jwks, &unnamed), Ok(claims.clone()), "the only key of its kind");
        for other in ["rsa", "ec", "ed", "unknown"].into_iter().filter(|other| *other != kid) {
            let token = signer.sign(&json!({ "alg": alg, "kid": other }), &claims);
            assert_eq!(verified(&jwks, &token), Err(ForeignRefusal::UnknownKey), "{alg} by {other}");
        }
        let (input, signature) = token.rsplit_once('.').expect("three parts");
        let changed =
            format!("{}.{}.{signature}", input.split('.').next().expect("a header"), encoded("{\"sub\":\"2\"}"));
        assert_eq!(verified(&jwks, &changed), Err(ForeignRefusal::Invalid), "{alg}");
        assert_eq!(verified(&Signer::new().jwks(), &token), Err(ForeignRefusal::Invalid), "another key of that name");
    }
}

#[test]
fn what_proves_nothing_is_refused() {
    let (signer, claims) = (Signer::new(), json!({ "sub": "1" }));
    for header in [
        json!({ "alg": "none" }),
        json!({ "alg": "None", "kid": "rsa" }),
        json!({ "alg": "HS256", "kid": "rsa" }),
        json!({ "alg": "RS512", "kid": "rsa" }),
        json!({ "alg": "RS256", "kid": "rsa", "crit": ["x"], "x": 1 }),
        json!({ "alg": "RS256", "kid": "rsa", "crit": null }),
        json!({ "kid": "rsa" }),
        json!(["RS256"]),
    ] {
        let token = signer.sign(&header, &claims);
        assert_eq!(verified(&signer.jwks(), &token), Err(ForeignRefusal::Invalid), "{header}");
    }
    for text in ["", "a.b", "a.b.c.d", ".."] {
        assert_eq!(verified(&signer.jwks(), text), Err(ForeignRefusal::Invalid));
    }
}

#[test]
fn a_key_is_used_for_what_its_issuer_says() {
    let (signer, claims) = (Signer::new(), json!({ "sub": "1" }));
    let token = signer.sign(&json!({ "alg": "RS256", "kid": "rsa" }), &claims);
    for (member, value, good) in [
        ("alg", json!("RS256"), true),
        ("alg", json!("PS256"), false),
        ("alg", json!("RSA-OAEP"), false),
        ("use", json!("enc"), false),
        ("kty", json!("oct"), false),
        ("n", json!("AQAB"), false),
    ] {
        let mut jwks = signer.jwks();
        jwks["keys"][0][member] = value.clone();
        assert_eq!(verified(&jwks, &token).is_ok(), good, "{member} {value}");
    }
    // A key that stands there twice could be either.
    let mut doubled = signer.jwks();
    let first = doubled["keys"][0].clone();
    doubled["keys"].as_array_mut().expect("a list").push(first);
    assert_eq!(verified(&doubled, &token), Err(ForeignRefusal::Invalid));
    // A key without a name is not the one that the token names.
    let mut unnamed = signer.jwks();
    unnamed["keys"][0].as_object_mut().expect("a key").remove("kid");
    assert_eq!(verified(&unnamed, &token), Err(ForeignRefusal::UnknownKey));
    let set = |text: &str| ForeignKeys::from_json(text.as_bytes()).is_ok();
    assert!(set("{\"keys\":[]}") && set("{\"keys\":[1,{\"kty\":\"x\"}]}") && !set("[]") && !set(""));
}
