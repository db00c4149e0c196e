//! Where somebody may be sent after a login: only to an address that the app registered, letter for letter. Pure.

use tenancy::apps::Profile;
use url::{Url, form_urlencoded};

/// The registered address that was asked for; the app's default when none was. `None` when it is not registered.
pub fn registered<'a>(profile: &'a Profile, asked: Option<&str>) -> Option<&'a str> {
    let default = profile.default_callback_uri.as_deref();
    match asked {
        None => default,
        Some(asked) => {
            default.into_iter().chain(profile.redirect_uris.iter().map(String::as_str)).find(|uri| *uri == asked)
        }
    }
}

/// The address with parameters in its query, after those that it has already.
pub fn with_query(uri: &str, parameters: &[(&str, &str)]) -> String {
    let separator = match Url::parse(uri).ok().and_then(|url| url.query().map(str::is_empty)) {
        None => "?",
        Some(true) => "",
        Some(false) => "&",
    };
    format!("{uri}{separator}{}", encoded(parameters))
}

/// The address with parameters in its fragment, which the browser keeps to itself.
pub fn with_fragment(uri: &str, parameters: &[(&str, &str)]) -> String {
    format!("{uri}#{}", encoded(parameters))
}

fn encoded(parameters: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn profile() -> Profile {
        Profile {
            redirect_uris: vec!["https://app.example/callback".into(), "https://app.example/other?x=1".into()],
            default_callback_uri: Some("https://app.example/default".into()),
            ..Profile::default()
        }
    }

    #[test]
    fn only_the_very_address_is_registered() {
        let profile = profile();
        assert_eq!(registered(&profile, None), Some("https://app.example/default"));
        for known in ["https://app.example/callback", "https://app.example/other?x=1", "https://app.example/default"] {
            assert_eq!(registered(&profile, Some(known)), Some(known));
        }
        for foreign in [
            "",
            "https://app.example/callback/",
            "https://app.example/callback?x=1",
            "https://app.example/callback#x",
            "https://app.example/Callback",
            "https://APP.example/callback",
            "https://app.example:443/callback",
            "http://app.example/callback",
            "https://app.example/callback/../callback",
            "https://app.example/%63allback",
            "https://app.example.evil.example/callback",
            "https://app.example@evil.example/callback",
            "https://evil.example/https://app.example/callback",
            "//app.example/callback",
            "/callback",
            "javascript:alert(1)//https://app.example/callback",
            " https://app.example/callback",
            "https://app.example/callback\r\nx: y",
        ] {
            assert_eq!(registered(&profile, Some(foreign)), None, "{foreign:?}");
        }
        assert_eq!(registered(&Profile::default(), None), None);
    }

    #[test]
    fn parameters_follow_those_that_are_there() {
        let parameters = [("code", "a b"), ("state", "x&y=\r\n#")];
        let added = "code=a+b&state=x%26y%3D%0D%0A%23";
        assert_eq!(with_query("https://a.example/cb", &parameters), format!("https://a.example/cb?{added}"));
        assert_eq!(with_query("https://a.example/cb?", &parameters), format!("https://a.example/cb?{added}"));
        assert_eq!(with_query("https://a.example/cb?x=1", &parameters), format!("https://a.example/cb?x=1&{added}"));
        assert_eq!(with_query("com.example.app:/done", &parameters), format!("com.example.app:/done?{added}"));
        assert_eq!(with_fragment("https://a.example/cb?x=1", &parameters), format!("https://a.example/cb?x=1#{added}"));
    }

    /// Addresses as apps register them, some with a query of their own.
    fn address() -> impl Strategy<Value = String> {
        prop_oneof![
            "https?://[a-z]{1,8}(\\.[a-z]{2,5}){0,2}(:[1-9][0-9]{1,3})?(/[a-z0-9._~-]{0,8}){0,3}(\\?[a-z0-9=&%+]{0,12})?",
            "[a-z]{2,6}\\.[a-z]{2,6}:/[a-z0-9]{0,8}(\\?[a-z]=[0-9])?",
        ]
    }

    proptest! {
        #[test]
        fn what_is_not_written_alike_is_not_registered(known in address(), asked in prop_oneof![address(), any::<String>()]) {
            let profile = Profile { redirect_uris: vec![known.clone()], ..Profile::default() };
            prop_assert_eq!(registered(&profile, Some(&known)), Some(known.as_str()));
            prop_assert_eq!(registered(&profile, Some(&asked)).is_some(), asked == known);
        }

        #[test]
        fn an_answer_stays_at_its_address(uri in address(), values in prop::collection::vec(any::<String>(), 1..4)) {
            let names = ["code", "state", "iss"];
            let parameters: Vec<(&str, &str)> = names.into_iter().zip(values.iter().map(String::as_str)).collect();
            let (before, after) = (Url::parse(&uri).unwrap(), Url::parse(&with_query(&uri, &parameters)).unwrap());
            prop_assert_eq!((before.scheme(), before.host(), before.port(), before.path()),
                (after.scheme(), after.host(), after.port(), after.path()));
            prop_assert_eq!(after.fragment(), None);
            let read: Vec<(String, String)> = after.query_pairs().into_owned().collect();
            let sent: Vec<(String, String)> =
                parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            prop_assert!(read.ends_with(&sent));
            prop_assert!(with_fragment(&uri, &parameters).bytes().all(|b| b.is_ascii_graphic()));
        }
    }
}
