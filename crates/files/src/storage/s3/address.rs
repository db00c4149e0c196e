//! `s3://KEY:SECRET@host[:port]/bucket?region=…&path_style=true`, judged before anybody is asked.

use kernel::Secret;
use percent_encoding::percent_decode_str;
use rusty_s3::{Bucket, UrlStyle};
use url::Url;

const FORM: &str = "must be file:DIR or s3://KEY:SECRET@host[:port]/bucket?region=…&path_style=true; special characters of \
                    the secret are written as %2F (for /), %40 (for @) and so on";
/// What most storages that have no regions answer to.
const REGION: &str = "us-east-1";

/// Which bucket, and how requests to it are signed. Does not print its secret.
#[derive(Clone, Debug)]
pub struct S3Address {
    pub(super) bucket: Bucket,
    pub(super) path_style: bool,
    pub(super) key: String,
    pub(super) secret: Secret<String>,
}

impl S3Address {
    /// The error says what is wrong without repeating the URL, which holds a secret.
    pub fn from_url(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|_| FORM)?;
        let host = url.host_str().filter(|host| !host.is_empty() && url.scheme() == "s3").ok_or(FORM)?;
        let (key, secret) = (decoded(url.username())?, decoded(url.password().unwrap_or_default())?);
        let name = url.path().trim_matches('/');
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        if !is_name || name.bytes().all(|byte| byte == b'.') || url.fragment().is_some() {
            return Err(FORM.to_owned());
        }
        let Options { region, path_style, tls } = Options::of(&url)?;
        let scheme = if tls { "https" } else { "http" };
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        let endpoint = Url::parse(&format!("{scheme}://{host}{port}")).map_err(|_| FORM)?;
        let style = if path_style { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let bucket = Bucket::new(endpoint, style, name.to_owned(), region)
            .map_err(|_| "needs path_style=true: the bucket cannot be a part of this host's name")?;
        Ok(Self { bucket, path_style, key, secret: Secret::new(secret) })
    }

    /// Where the bucket is, for people.
    pub(in crate::storage) fn shown(&self) -> String {
        let url = self.bucket.base_url();
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        format!("the bucket {} at {}{port}", self.bucket.name(), url.host_str().unwrap_or_default())
    }
}

struct Options {
    region: String,
    path_style: bool,
    tls: bool,
}

impl Options {
    fn of(url: &Url) -> Result<Self, String> {
        let mut options = Self { region: REGION.to_owned(), path_style: false, tls: true };
        for (name, value) in url.query_pairs() {
            match (&*name, &*value) {
                ("region", region) if is_region(region) => options.region = region.to_owned(),
                ("region", _) => return Err("has a region that is none".to_owned()),
                ("path_style", "true") => options.path_style = true,
                ("path_style", "false") => options.path_style = false,
                ("tls", "none") => options.tls = false,
                _ => return Err("takes region=…, path_style=true and tls=none after the question mark".to_owned()),
            }
        }
        Ok(options)
    }
}

fn is_region(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A key or a secret: plain characters, and some of them.
fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| FORM)?;
    let is_plain = !decoded.is_empty() && decoded.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { Ok(decoded.into_owned()) } else { Err(FORM.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_bucket_and_who_asks() {
        let read = |text: &str| S3Address::from_url(text).expect("an address");
        let plain = read("s3://AKID:a%2Fb+c%40@s3.eu-central-1.amazonaws.com/acme?region=eu-central-1");
        assert_eq!(plain.bucket.base_url().as_str(), "https://acme.s3.eu-central-1.amazonaws.com/");
        assert_eq!((plain.key.as_str(), plain.secret.expose().as_str()), ("AKID", "a/b+c@"));
        assert_eq!((plain.bucket.name(), plain.bucket.region()), ("acme", "eu-central-1"));
        let local = read("s3://k:s@127.0.0.1:9000/acme/?path_style=true&tls=none");
        assert_eq!(local.bucket.base_url().as_str(), "http://127.0.0.1:9000/acme/");
        assert_eq!((local.bucket.region(), local.shown().as_str()), (REGION, "the bucket acme at 127.0.0.1:9000"));
        assert_eq!(read("s3://k:s@[::1]:1/acme?path_style=true").bucket.base_url().as_str(), "https://[::1]:1/acme/");
    }

    #[test]
    fn what_is_none_is_refused_and_never_repeated() {
        for text in [
            "s3://k:hidden@host",
            "s3://k:hidden@host/",
            "s3://k:hidden@host/a/b",
            "s3://k:hidden@host/..",
            "s3://k:hidden@host/a%2Fb",
            "s3://k:hid/den@host/bucket",
            "s3://k:hidden%0A@host/bucket",
            "s3://hidden@host/bucket",
            "s3://:hidden@host/bucket",
            "s3:hidden",
            "http://k:hidden@host/bucket",
            "s3://k:hidden@host/bucket?path_style=maybe",
            "s3://k:hidden@host/bucket?region=",
            "s3://k:hidden@host/bucket?region=a/b",
            "s3://k:hidden@host/bucket?colour=blue",
            "s3://k:hidden@127.0.0.1/bucket",
            "s3://k:hidden@host/bucket#hidden",
        ] {
            let problem = S3Address::from_url(text).expect_err(text);
            assert!(!problem.contains("hidden") && !problem.contains("den@"), "{text}: {problem}");
        }
        let address = S3Address::from_url("s3://k:hidden@host/bucket").expect("an address");
        assert!(!format!("{address:?}").contains("hidden"));
    }
}
