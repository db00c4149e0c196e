//! Uploads in parts that nobody ended, because a process was killed meanwhile. Their parts are stored and paid for, and no
//! listing of objects shows them.

use rusty_s3::Method;
use spine::outbound::StatusCode;

use super::{Answered, Call, Fault, LARGEST_PAGE, PREFIX, QUICK, Remote, name_in};

/// An upload that was begun.
pub(crate) struct UnendedUpload {
    /// Of the object that it would have become.
    pub(crate) object: String,
    key: String,
    upload: String,
}

impl Remote {
    /// Some of those below the prefix: what is beyond a page is found once these are gone.
    pub(in crate::storage) async fn unended(&self) -> Answered<Vec<UnendedUpload>> {
        let most = LARGEST_PAGE.to_string();
        let query = [("uploads", "1"), ("max-uploads", most.as_str()), ("prefix", PREFIX)];
        let answer = self.call(&Call { query: &query, ..Call::to(Method::Get, None) }, &QUICK).await?;
        match (answer.status, std::str::from_utf8(&answer.body)) {
            (StatusCode::OK, Ok(text)) => Ok(listed(text)),
            (StatusCode::OK, Err(_)) => Err(Fault::strange("a listing of uploads")),
            _ => Err(Fault::of_answer(&answer)),
        }
    }

    /// Removes its parts.
    pub(in crate::storage) async fn give_up(&self, unended: &UnendedUpload) -> Answered<()> {
        self.abort_parts(&unended.key, &unended.upload).await
    }
}

/// The uploads of a listing that are ours. Our keys are written the same in XML.
fn listed(text: &str) -> Vec<UnendedUpload> {
    let of = |upload: &str| {
        let (key, upload) = (value(upload, "Key")?, value(upload, "UploadId")?);
        let object = name_in(key)?;
        Some(UnendedUpload { object, key: key.to_owned(), upload: unescaped(upload) })
    };
    text.split("<Upload>").skip(1).filter_map(of).collect()
}

fn value<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(value, _)| value)
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_for_what_is_ours() {
        let upload = |key: &str, id: &str| {
            format!("<Upload><UploadId>{id}</UploadId><Key>{key}</Key><Initiator><ID>x</ID></Initiator></Upload>")
        };
        let uploads = [
            upload("tenantry/ab/abcdef", "a.b_c-d+/="),
            upload("tenantry/readme", "other"),
            upload("elsewhere/ab/abcdef", "other"),
            upload("tenantry/cd/cdefgh", "1&amp;lt;2"),
            "<Upload><Key>tenantry/ef/efghij</Key>".to_owned(),
        ];
        let text =
            format!("<ListMultipartUploadsResult><Bucket>b</Bucket>{}</ListMultipartUploadsResult>", uploads.concat());
        let found: Vec<_> = listed(&text).into_iter().map(|one| (one.object, one.key, one.upload)).collect();
        let expected = [("abcdef", "tenantry/ab/abcdef", "a.b_c-d+/="), ("cdefgh", "tenantry/cd/cdefgh", "1&lt;2")];
        assert_eq!(found, expected.map(|(object, key, id)| (object.to_owned(), key.to_owned(), id.to_owned())));
        assert!(listed("").is_empty());
    }
}
