//! Messages of the greatest length that is read, each made to cost as much as it can before it is refused.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rsa::{OAEP_SHA256_MGF1SHA256, OaepPublicEncryptingKey, PublicEncryptingKey},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bench::{
    Result,
    client::Connection,
    load,
    report::{self, Aim, Bound, times},
    series::{Round, Series},
};
use x509_cert::{
    Certificate,
    der::{Decode as _, Encode as _},
};

use super::{
    Options,
    provider::{Answer, envelope, groups},
    server::Server,
};

/// As XML; in base64 it is as long as is allowed.
const LONGEST: usize = saml::MAX_ENCODED / 4 * 3;
/// What stands around the parts below, with room to spare.
const FRAME: usize = 6 * 1024;
const CALLERS: usize = 2;
/// Declarations in one tag: as many as are let through.
const PREFIXES: usize = 24;
/// As many as are let through, with their texts.
const VALUES: usize = 2_400;

struct Hostile {
    name: &'static str,
    xml: String,
    /// Whether the form has every letter escaped.
    escaped: bool,
}

/// A response with this in it, and text up to the greatest length.
fn grown(answer: &Answer<'_>, inner: &str) -> String {
    let missing = LONGEST - envelope(answer, inner).len();
    envelope(answer, &format!("{inner}{}", "x".repeat(missing)))
}

/// So many tags with as many attributes as one may have, and with long values.
fn attributes() -> String {
    let tag = |_| {
        let all: String = (0..60).map(|n| format!(" attribute{n}=\"{}\"", "v".repeat(32))).collect();
        format!("<t{all}/>")
    };
    (0..60).map(tag).collect()
}

/// Declarations in elements that contain each other, and this in the innermost.
fn declared(depth: usize, inner: &str) -> String {
    let tag = |depth: usize| {
        let all: String = (0..PREFIXES).map(|n| format!(" xmlns:p{depth:02}{n:02}=\"urn:{depth}:{n}\"")).collect();
        format!("<t{all}>")
    };
    format!("{}{inner}{}", (0..depth).map(tag).collect::<String>(), "</t>".repeat(depth))
}

/// As many attributes as there are declarations, each with another prefix.
fn used(depth: usize) -> String {
    let tag = |depth: usize| {
        format!("<t{}/>", (0..PREFIXES).map(|n| format!(" p{depth:02}{n:02}:a=\"v\"")).collect::<String>())
    };
    (0..depth).map(tag).collect()
}

/// Encrypted for the service, as anybody can who has read its metadata.
fn encrypted(plain: &str, certificate: &[u8]) -> Result<String> {
    let certificate = Certificate::from_der(certificate)?;
    let public = certificate.tbs_certificate.subject_public_key_info.to_der()?;
    let public = OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&public)?)?;
    let (secret, nonce) = ([7; 32], [7; NONCE_LEN]);
    let mut wrapped = vec![0; public.ciphertext_size()];
    let wrapped = public.encrypt(&OAEP_SHA256_MGF1SHA256, &secret, &mut wrapped, None)?;
    let mut sealed = plain.as_bytes().to_vec();
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &secret)?);
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed)?;
    let (wrapped, sealed) = (BASE64_STANDARD.encode(wrapped), BASE64_STANDARD.encode([&nonce[..], &sealed].concat()));
    Ok(format!(
        "<saml:EncryptedAssertion><xenc:EncryptedData xmlns:xenc=\"http://www.w3.org/2001/04/xmlenc#\">\
         <xenc:EncryptionMethod Algorithm=\"http://www.w3.org/2009/xmlenc11#aes256-gcm\"/>\
         <ds:KeyInfo xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\"><xenc:EncryptedKey>\
         <xenc:EncryptionMethod Algorithm=\"http://www.w3.org/2009/xmlenc11#rsa-oaep\"><ds:DigestMethod \
         Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"/><xenc11:MGF \
         xmlns:xenc11=\"http://www.w3.org/2009/xmlenc11#\" Algorithm=\"http://www.w3.org/2009/xmlenc11#mgf1sha256\"/>\
         </xenc:EncryptionMethod><xenc:CipherData><xenc:CipherValue>{wrapped}</xenc:CipherValue></xenc:CipherData>\
         </xenc:EncryptedKey></ds:KeyInfo><xenc:CipherData><xenc:CipherValue>{sealed}</xenc:CipherValue>\
         </xenc:CipherData></xenc:EncryptedData></saml:EncryptedAssertion>"
    ))
}

async fn all(server: &Server) -> Result<Vec<Hostile>> {
    let bare = Answer {
        request_id: "_r",
        acs_url: &server.acs_url,
        audience: "https://somebody-else.example",
        attributes: "",
        prefixes: "",
    };
    let (provider, certificate) = (&server.provider, server.encryption_certificate().await?);
    let room = LONGEST - FRAME;
    let value = groups(2).len() - groups(1).len();
    let (many, fewer) = (groups(VALUES), groups((room / 4 * 3 / value).min(VALUES)));
    let list: String = (0..room / 2 / 5).map(|n| format!("{n:04x} ")).collect();
    let signed = provider.assertion(&Answer { attributes: &many, ..bare })?;
    let long_info = provider.assertion(&bare)?.replacen(
        "<ds:CanonicalizationMethod",
        &format!("{}<ds:CanonicalizationMethod", " ".repeat(room)),
        1,
    );
    let reference = "<ds:Reference URI=\"#_a\"><ds:DigestMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"/>\
                     <ds:DigestValue>AAAA</ds:DigestValue></ds:Reference>";
    let references = provider.assertion(&bare)?.replacen(
        "</ds:SignedInfo>",
        &format!("{}</ds:SignedInfo>", reference.repeat(room / reference.len())),
        1,
    );
    let parts = [
        ("5,000 elements in each other", format!("{}{}", "<deep>".repeat(4_990), "</deep>".repeat(4_990))),
        ("80 times 60 elements in each other", format!("{}{}", "<d>".repeat(60), "</d>".repeat(60)).repeat(80)),
        ("9,900 elements", "<name/>".repeat(9_900)),
        ("4,900 elements", "<name/>".repeat(4_900)),
        ("3,600 attributes", attributes()),
        ("1,440 declarations, each used", declared(60, &used(60))),
        ("1,440 declarations, the first used by 4,800 elements", declared(60, &"<p0000:n/>".repeat(4_800))),
        ("one text", String::new()),
        ("one text of character references", "&#65;".repeat(room / 5)),
        ("many references", references),
        ("a long SignedInfo", long_info),
        ("prefixes to keep", provider.assertion(&Answer { prefixes: list.trim_end(), ..bare })?),
        ("signed, for another audience", signed.clone()),
        ("encrypted, signed, for another audience", {
            encrypted(&provider.assertion(&Answer { attributes: &fewer, ..bare })?, &certificate)?
        }),
    ];
    let mut all: Vec<Hostile> =
        parts.into_iter().map(|(name, inner)| Hostile { name, xml: grown(&bare, &inner), escaped: false }).collect();
    all.push(Hostile { name: "the same signed, every letter escaped", xml: grown(&bare, &signed), escaped: true });
    Ok(all)
}

pub async fn measure(options: &Options, server: &Server, aims: &mut Vec<Aim>) -> Result<Vec<Series>> {
    let all = all(server).await?;
    let mut series: Vec<Series> = all.iter().map(|hostile| Series::new(hostile.name, CALLERS)).collect();
    for round in 1..=options.flags.rounds() {
        eprintln!("hostile messages, round {round}");
        // A refusal leaves the login as it is, so that one is enough for all.
        let begun = server.begin(1).await?;
        for (hostile, series) in all.iter().zip(&mut series) {
            let request = match hostile.escaped {
                true => server.escaped_answer(&hostile.xml, &begun[0]),
                false => server.answer(&hostile.xml, &begun[0]),
            };
            let mut connections = Vec::new();
            for _ in 0..CALLERS {
                connections.push(Connection::open(server.address, request.clone().expecting(400)).await?);
            }
            series.rounds.push(load::drive(connections, options.flags.turn(), || server.cpu()).await?.round);
        }
    }
    let cpu = |round: &Round| round.cpu_micros;
    let text = series.iter().position(|one| one.name == "one text").unwrap_or_default();
    let compared: Vec<_> = series.iter().map(|one| vec![times(one.ratio(&series[text], cpu))]).collect();
    println!("\nRefused messages of 256 KiB\n\n{}", report::table(&series, None, &compared, "CPU over one text"));
    let costs = |one: &&Series| one.cpu_micros().median;
    if let Some(worst) = series.iter().max_by(|a, b| costs(a).total_cmp(&costs(b))) {
        let what = format!("CPU of the worst message of 256 KiB ({})", worst.name);
        aims.push(Aim::new(what, worst.cpu_micros().median / 1e3, Bound::AtMost(50.0), " ms"));
    }
    Ok(series)
}
