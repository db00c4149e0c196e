//! Somebody with a browser that runs no scripts: keeps cookies, fills in forms, presses buttons, and follows redirects
//! within the service. What leaves the service is where the app would continue.

use std::collections::BTreeMap;

use http::Method;
use url::Url;

use crate::{Answer, Caller, TestApp};

/// Where the service's pages are in tests.
pub const HERE: &str = "http://tenantry.test";

/// A browser on a page.
#[derive(Clone)]
pub struct Browser {
    caller: Caller,
    cookies: BTreeMap<String, String>,
    page: Option<Answer>,
    /// The address of the page, or where a redirect led away to.
    pub location: String,
}

impl TestApp {
    /// A browser that has been nowhere yet.
    pub fn browser(&self) -> Browser {
        Browser { caller: self.anon(), cookies: BTreeMap::new(), page: None, location: String::new() }
    }
}

impl Browser {
    /// Opens an address and goes where it leads.
    pub async fn open(&mut self, address: &str) -> &mut Self {
        let mut address = address.to_owned();
        for _ in 0..10 {
            let answer = self.request(Method::GET, &address, String::new()).await;
            match self.arrive(&address, answer) {
                Some(next) => address = next,
                None => return self,
            }
        }
        panic!("{address} leads in a circle");
    }

    /// Fills in the page's form that posts to `action` and sends it.
    pub async fn submit(&mut self, action: &str, fields: &[(&str, &str)]) -> &mut Self {
        let form = self.filled(action, fields);
        self.post(action, &form).await
    }

    /// The form of the page that posts to this address, filled in.
    #[track_caller]
    pub fn filled(&self, action: &str, fields: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut form = self.form(action);
        form.retain(|(name, _)| !fields.iter().any(|(given, _)| given == name));
        form.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        form
    }

    /// Sends a form as it is, whatever the page holds.
    pub async fn post(&mut self, action: &str, form: &[(String, String)]) -> &mut Self {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let answer = self.request(Method::POST, action, body).await;
        if let Some(next) = self.arrive(action, answer) {
            Box::pin(self.open(&next)).await;
        }
        self
    }

    async fn request(&mut self, method: Method, address: &str, body: String) -> Answer {
        let path = address.strip_prefix(HERE).unwrap_or(address);
        let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut caller = self.caller.header("content-type", "application/x-www-form-urlencoded");
        if !pairs.is_empty() {
            caller = caller.header("cookie", &pairs.join("; "));
        }
        let answer = caller.send(method, path, body).await;
        if answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            let policy = answer.header("content-security-policy").unwrap_or_default();
            assert!(policy.contains("frame-ancestors 'none'"), "{path} can be framed: {policy}");
        }
        for cookie in answer.headers("set-cookie") {
            let (pair, attributes) = cookie.split_once(';').unwrap_or((cookie, ""));
            let (name, value) = pair.split_once('=').expect("a cookie has a name");
            if attributes.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    /// Shows the answer; the next address when it is a redirect within the service.
    fn arrive(&mut self, address: &str, answer: Answer) -> Option<String> {
        self.location = address.to_owned();
        let Some(target) = answer.header("location").map(str::to_owned) else {
            self.page = Some(answer);
            return None;
        };
        if target.starts_with(HERE) || target.starts_with('/') {
            return Some(target);
        }
        self.location = target;
        self.page = Some(answer);
        None
    }

    /// The page that is shown.
    #[track_caller]
    pub fn page(&self) -> &Answer {
        self.page.as_ref().expect("a page was opened")
    }

    #[track_caller]
    pub fn html(&self) -> &str {
        self.page().body()
    }

    /// Fails unless the page has this status and holds this text.
    #[track_caller]
    pub fn sees(&mut self, status: u16, text: &str) -> &mut Self {
        let page = self.page();
        assert_eq!(page.status(), status, "{} {}", self.location, page.body());
        assert!(page.body().contains(text), "{text:?} is not on {}:\n{}", self.location, page.body());
        self
    }

    /// The hidden and filled-in fields of a form of the page.
    #[track_caller]
    pub fn form(&self, action: &str) -> Vec<(String, String)> {
        let html = self.html();
        let start = html.find(&format!("<form method=\"post\" action=\"{action}\""));
        let start = start.unwrap_or_else(|| panic!("no form posts to {action}:\n{html}"));
        let form = &html[start..start + html[start..].find("</form>").expect("a form ends")];
        let inputs = form.split("<input ").skip(1).map(|input| (attribute(input, "name"), attribute(input, "value")));
        inputs.chain(form.split("<select ").skip(1).map(chosen)).collect()
    }

    /// The address of a link of the page.
    #[track_caller]
    pub fn link(&self, label: &str) -> String {
        let html = self.html();
        let end = html.find(&format!("\">{label}</a>")).unwrap_or_else(|| panic!("no link says {label}:\n{html}"));
        let start = html[..end].rfind("href=\"").expect("a link has an address") + 6;
        unescaped(&html[start..end])
    }

    /// A parameter of the address that the login led to, in its query or its fragment.
    #[track_caller]
    pub fn answer(&self, name: &str) -> Option<String> {
        let url = Url::parse(&self.location).unwrap_or_else(|_| panic!("{} is not an address", self.location));
        let text = url.fragment().or(url.query()).unwrap_or_default();
        url::form_urlencoded::parse(text.as_bytes())
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.into_owned())
    }

    /// The same browser, sending this header too.
    #[must_use]
    pub fn header(&self, name: &str, value: &str) -> Self {
        Self { caller: self.caller.header(name, value), ..self.clone() }
    }

    pub fn cookies(&self) -> &BTreeMap<String, String> {
        &self.cookies
    }

    pub fn set_cookie(&mut self, name: &str, value: &str) {
        self.cookies.insert(name.to_owned(), value.to_owned());
    }
}

/// What a list sends: its chosen entry, else its first one.
fn chosen(select: &str) -> (String, String) {
    let options = || select.split("</select>").next().into_iter().flat_map(|list| list.split("<option ").skip(1));
    let option = options().find(|option| option.contains(" selected>")).or_else(|| options().next());
    (attribute(select, "name"), option.map(|option| attribute(option, "value")).unwrap_or_default())
}

fn attribute(input: &str, name: &str) -> String {
    let tag = &input[..input.find('>').unwrap_or(input.len())];
    let Some(start) = tag.find(&format!("{name}=\"")) else { return String::new() };
    let value = &tag[start + name.len() + 2..];
    unescaped(&value[..value.find('"').unwrap_or(value.len())])
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&")
}
