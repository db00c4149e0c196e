//! The base of all hosted pages: one accessible layout that works without scripts, light and dark, in an app's own
//! looks.
//!
//! A page loads nothing but its style sheets and the app's logo. An app's CSS is a style sheet of its own, and images
//! and fonts come only from here and the logo's origin, so that it cannot carry away what people type.

mod form;
mod qr;

use std::{
    fmt::{self, Write as _},
    sync::Arc,
};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use kernel::{Error, Result};
use url::Url;

use crate::{Css, Describe, Escaped, Operation, Routes, Script, WithHeaders, failure::retry_after};
pub use form::{Field, FieldKind, PostForm, Select};

const STYLE: &str = include_str!("style.css");
const STYLE_PATH: &str = "/cloud-views/style.css";
const SCRIPT: &str = include_str!("form.js");
const SCRIPT_PATH: &str = "/cloud-views/form.js";

/// The style sheet and the script that all hosted pages share.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Routes<S> {
    Routes::new("Hosted pages")
        .get(STYLE_PATH, style, "The style of the hosted pages")
        .hidden()
        .get(SCRIPT_PATH, script, "What keeps forms of the hosted pages from being sent twice")
        .hidden()
}

async fn style() -> Result<WithHeaders<Css>> {
    Ok(WithHeaders::new(Css(STYLE.to_owned())).with(header::CACHE_CONTROL, "public, max-age=300"))
}

async fn script() -> Result<WithHeaders<Script>> {
    Ok(WithHeaders::new(Script(SCRIPT)).with(header::CACHE_CONTROL, "public, max-age=300"))
}

/// What a page shows of the app it belongs to.
#[derive(Clone, Debug, Default)]
pub struct Brand {
    pub app_name: String,
    /// An http or https URL.
    pub logo: Option<String>,
    /// The path of the app's own style sheet.
    pub style: Option<String>,
}

impl Brand {
    /// For a page that cannot know its app.
    pub fn of_the_service() -> Self {
        Self { app_name: "Tenantry".into(), ..Self::default() }
    }
}

/// A page as an answer. What goes in is text; the page writes the HTML.
#[derive(Clone, Debug)]
pub struct HostedPage {
    status: StatusCode,
    brand: Brand,
    language: String,
    title: String,
    content: String,
    /// Where a form's answer may lead besides here.
    form_target: Option<String>,
    /// The path of a script besides the one that all pages have.
    script: Option<&'static str>,
}

impl HostedPage {
    pub fn new(brand: &Brand, title: &str) -> Self {
        Self {
            status: StatusCode::OK,
            brand: brand.clone(),
            language: "en".into(),
            title: title.to_owned(),
            content: String::new(),
            form_target: None,
            script: None,
        }
    }

    #[must_use]
    pub fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The code of the language that its texts are in.
    #[must_use]
    pub fn language(self, code: &str) -> Self {
        Self { language: code.to_owned(), ..self }
    }

    /// Browsers apply the policy for forms to redirects as well: the address that a form may end at.
    #[must_use]
    pub fn form_target(self, uri: &str) -> Self {
        Self { form_target: target(uri), ..self }
    }

    /// Lets a form of the page end at any address of the web, beside its target: for redirects that are known only later.
    #[must_use]
    pub fn form_anywhere(self, secure_only: bool) -> Self {
        let anywhere = if secure_only { "https:" } else { "http: https:" };
        let target = self.form_target.unwrap_or_default();
        Self { form_target: Some(format!("{target} {anywhere}").trim_start().to_owned()), ..self }
    }

    /// Loads a script of this service. A page with one still has to say what to do without it.
    #[must_use]
    pub fn script(self, path: &'static str) -> Self {
        Self { script: Some(path), ..self }
    }

    #[must_use]
    pub fn paragraph(self, text: &str) -> Self {
        self.push(format_args!("<p>{}</p>\n", Escaped(text)))
    }

    /// Begins a part of the page.
    #[must_use]
    pub fn heading(self, text: &str) -> Self {
        self.push(format_args!("<h2>{}</h2>\n", Escaped(text)))
    }

    /// Something said by the way.
    #[must_use]
    pub fn aside(self, text: &str) -> Self {
        self.push(format_args!("<p class=\"quiet\">{}</p>\n", Escaped(text)))
    }

    /// Something to read closely, such as an address.
    #[must_use]
    pub fn highlight(self, text: &str) -> Self {
        self.push(format_args!("<p class=\"highlight\">{}</p>\n", Escaped(text)))
    }

    /// Something to copy letter by letter.
    #[must_use]
    pub fn code(self, text: &str) -> Self {
        self.push(format_args!("<code class=\"highlight\">{}</code>\n", Escaped(text)))
    }

    /// Lines as they are, such as JSON.
    #[must_use]
    pub fn block(self, text: &str) -> Self {
        self.push(format_args!("<pre class=\"highlight\" tabindex=\"0\">{}</pre>\n", Escaped(text)))
    }

    /// News that a screen reader says at once.
    #[must_use]
    pub fn notice(self, text: &str) -> Self {
        self.push(format_args!("<p class=\"notice\" role=\"status\">{}</p>\n", Escaped(text)))
    }

    /// What went wrong, said at once.
    #[must_use]
    pub fn alert(self, text: &str) -> Self {
        self.push(format_args!("<p class=\"alert\" role=\"alert\">{}</p>\n", Escaped(text)))
    }

    /// What to do where scripts do not run.
    #[must_use]
    pub fn without_script(self, text: &str) -> Self {
        self.push(format_args!("<noscript><p class=\"alert\">{}</p></noscript>\n", Escaped(text)))
    }

    #[must_use]
    pub fn form(self, form: &PostForm) -> Self {
        self.push(format_args!("{form}"))
    }

    /// A way to another page, after a few words.
    #[must_use]
    pub fn link(self, words: &str, label: &str, href: &str) -> Self {
        let space = if words.is_empty() { "" } else { " " };
        let (words, label, href) = (Escaped(words), Escaped(label), Escaped(href));
        self.push(format_args!("<p class=\"quiet\">{words}{space}<a href=\"{href}\">{label}</a></p>\n"))
    }

    /// A way to another page that looks like a button.
    #[must_use]
    pub fn link_button(self, label: &str, href: &str) -> Self {
        let (label, href) = (Escaped(label), Escaped(href));
        self.push(format_args!("<p><a class=\"button\" href=\"{href}\">{label}</a></p>\n"))
    }

    /// Ways to the pages beside this one, each a label and a path; `here` is the path of the page itself.
    #[must_use]
    pub fn navigation(self, ways: &[(String, String)], here: &str) -> Self {
        let links = ways.iter().map(|(label, href)| {
            let current = if href == here { " aria-current=\"page\"" } else { "" };
            format!("<a href=\"{}\"{current}>{}</a>\n", Escaped(href), Escaped(label))
        });
        let links: String = links.collect();
        self.push(format_args!("<nav>\n{links}</nav>\n"))
    }

    /// A table, which scrolls by itself where it is too wide. `label` says what it lists to whoever cannot see it.
    #[must_use]
    pub fn table(self, label: &str, heads: &[String], rows: &[TableRow]) -> Self {
        let heads: String = heads.iter().map(|head| format!("<th scope=\"col\">{}</th>", Escaped(head))).collect();
        let rows: String = rows.iter().map(ToString::to_string).collect();
        let label = Escaped(label);
        self.push(format_args!(
            "<div class=\"table\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">\n<table>\n\
             <thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
        ))
    }

    /// A QR code, for a camera; `label` says what it holds to whoever cannot see it.
    pub fn qr_code(self, label: &str, text: &str) -> Result<Self> {
        let svg = qr::svg(label, text)?;
        Ok(self.push(format_args!("{svg}")))
    }

    fn push(mut self, html: std::fmt::Arguments<'_>) -> Self {
        self.content.write_fmt(html).expect("a String takes any text");
        self
    }

    fn policy(&self) -> HeaderValue {
        let logo = self.brand.logo.as_deref().and_then(origin).unwrap_or_default();
        let target = self.form_target.as_deref().unwrap_or_default();
        let connect = if self.script.is_some() { "connect-src 'self'; " } else { "" };
        let policy = format!(
            "default-src 'none'; script-src 'self'; {connect}style-src 'self'; img-src 'self' {logo}; font-src 'self' {logo}; \
             form-action 'self' {target}; frame-ancestors 'none'; base-uri 'none'"
        );
        HeaderValue::try_from(policy).expect("an origin is visible ASCII")
    }

    fn html(&self) -> String {
        let Self { brand, title, content, .. } = self;
        let own_style = brand.style.as_deref().map(|path| {
            let path = Escaped(path);
            format!("<link rel=\"stylesheet\" href=\"{path}\">\n")
        });
        let script = self.script.map(|path| format!("<script src=\"{}\" defer></script>\n", Escaped(path)));
        let name = Escaped(&brand.app_name);
        let mark = match brand.logo.as_deref().filter(|logo| origin(logo).is_some()) {
            Some(logo) => format!("<img class=\"logo\" src=\"{}\" alt=\"{name}\">", Escaped(logo)),
            None => format!("<span class=\"name\">{name}</span>"),
        };
        format!(
            "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"robots\" content=\"noindex\">\n\
             <title>{title} – {name}</title>\n<link rel=\"stylesheet\" href=\"{STYLE_PATH}\">\n{own_style}\
             <script src=\"{SCRIPT_PATH}\" defer></script>\n{script}\
             </head>\n<body>\n<header class=\"brand\">{mark}</header>\n<main class=\"card\">\n<h1>{title}</h1>\n\
             {content}</main>\n</body>\n</html>\n",
            language = Escaped(&self.language),
            title = Escaped(title),
            own_style = own_style.unwrap_or_default(),
            script = script.unwrap_or_default(),
        )
    }

    /// Makes a response this page, whatever it was.
    pub(crate) fn write_to(&self, response: &mut Response) {
        *response.body_mut() = Body::from(self.html());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy());
    }
}

/// A row of a table: what it is about, with a way to a page of its own, and what is said of it.
#[derive(Clone, Debug)]
pub struct TableRow {
    pub name: String,
    pub href: Option<String>,
    pub cells: Vec<String>,
}

impl fmt::Display for TableRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Escaped(&self.name);
        match &self.href {
            Some(href) => write!(f, "<tr><th scope=\"row\"><a href=\"{}\">{name}</a></th>", Escaped(href))?,
            None => write!(f, "<tr><th scope=\"row\">{name}</th>")?,
        }
        for cell in &self.cells {
            write!(f, "<td>{}</td>", Escaped(cell))?;
        }
        f.write_str("</tr>\n")
    }
}

/// Words of an app in the place of ours.
pub type Words = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// How a failure is shown on an app's page.
#[derive(Clone)]
pub struct PageSetting {
    pub brand: Brand,
    /// The code of the words' language.
    pub language: String,
    pub words: Words,
    /// The address of the page to start again from.
    pub way_back: Option<String>,
}

impl PageSetting {
    fn of_the_service() -> Self {
        let words: Words = Arc::new(str::to_owned);
        Self { brand: Brand::of_the_service(), language: "en".into(), words, way_back: None }
    }
}

/// The page for a request that failed. A person gets the words of the error, a way back, and what to quote to support.
pub(crate) fn failure(
    setting: Option<&PageSetting>,
    status: StatusCode,
    error: &Error,
    request_id: &str,
) -> HostedPage {
    let title = match status {
        StatusCode::NOT_FOUND => "Page not found",
        StatusCode::TOO_MANY_REQUESTS => "Too many attempts",
        StatusCode::SERVICE_UNAVAILABLE => "Temporarily unavailable",
        status if status.is_server_error() => "Something went wrong",
        _ => "This request could not be completed",
    };
    let PageSetting { brand, language, words: say, way_back } =
        setting.cloned().unwrap_or_else(PageSetting::of_the_service);
    let page = HostedPage::new(&brand, &say(title)).language(&language).status(status);
    let mut page = match retry_after(error) {
        Some(seconds) if status == StatusCode::TOO_MANY_REQUESTS => {
            let text = say("Try again in {seconds} seconds.");
            page.paragraph(&text.replace("{seconds}", &seconds.to_string()))
        }
        _ => page.paragraph(&say(error.public())),
    };
    // The error about one member says what is wrong with it already.
    let details = error.details().iter().map(|problem| format!("{} {}", problem.field, problem.message));
    for detail in details.filter(|detail| detail != error.public()) {
        page = page.aside(&detail);
    }
    if let Some(href) = way_back {
        page = page.link("", &say("Back to sign-in"), &href);
    }
    page.aside(
        &say("If the problem persists, contact support and quote this request ID: {number}")
            .replace("{number}", request_id),
    )
}

/// What a policy may allow of an address: the origin of a web address, the scheme of an app's own one.
fn target(uri: &str) -> Option<String> {
    let url = Url::parse(uri).ok()?;
    match url.scheme() {
        "http" | "https" => origin(uri),
        scheme => Some(format!("{scheme}:")),
    }
}

/// The origin of a web address. Anything else has none, nor has a host that could add to the policy: `;` and `,` are
/// allowed in the hosts of URLs.
fn origin(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let origin = matches!(url.scheme(), "http" | "https").then(|| url.origin().ascii_serialization())?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/[]".contains(&byte);
    origin.bytes().all(plain).then_some(origin)
}

impl IntoResponse for HostedPage {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        self.write_to(&mut response);
        response
    }
}

impl Describe for HostedPage {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "text/html");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brand() -> Brand {
        Brand {
            app_name: "R&D <b>".into(),
            logo: Some("https://cdn.example/logo.svg?a=1&b=2".into()),
            style: Some("/cloud-views/brand/app_1/style.css".into()),
        }
    }

    #[test]
    fn every_text_is_escaped() {
        let form = PostForm::new("next").hidden("token", "\"><script>").button("Go <now>");
        let html = HostedPage::new(&brand(), "<i>").paragraph("<script>").highlight("a & b").form(&form).html();
        assert!(!html.contains("<script>") && !html.contains("<i>") && !html.contains("<b>") && !html.contains("<now"));
        assert!(html.contains("R&amp;D") && html.contains("?a=1&amp;b=2"));
    }

    #[test]
    fn tables_and_ways_are_escaped_too() {
        let row = TableRow { name: "<a@b>".into(), href: Some("/x?\"".into()), cells: vec!["<td>".into()] };
        let html = HostedPage::new(&brand(), "Hello")
            .navigation(&[("<Plan>".into(), "/plan".into()), ("Us".into(), "/us".into())], "/us")
            .table("\"All\"", &["<Name>".into()], &[row])
            .html();
        assert!(!html.contains("<a@b>") && !html.contains("<td><td>") && !html.contains("<Plan>"));
        assert!(!html.contains("<Name>") && html.contains("aria-label=\"&quot;All&quot;\""));
        assert!(html.contains("<a href=\"/us\" aria-current=\"page\">Us</a>"));
    }

    #[test]
    fn pictures_come_from_here_and_the_logos_origin_alone() {
        let policy = |logo: Option<&str>| {
            let brand = Brand { logo: logo.map(str::to_owned), ..brand() };
            HostedPage::new(&brand, "Hello").policy().to_str().unwrap().to_owned()
        };
        assert!(policy(Some("https://cdn.example/x/y.png")).contains("img-src 'self' https://cdn.example;"));
        assert!(policy(None).contains("img-src 'self' ;"));
        for odd in ["data:image/png,x", "no url", "https://a.example;script-src/", "https://a,b/"] {
            assert!(policy(Some(odd)).contains("img-src 'self' ;"), "{odd}");
        }
        assert!(!policy(None).contains("unsafe") && policy(None).contains("script-src 'self';"));
    }

    #[test]
    fn a_form_may_end_at_its_target_alone() {
        let policy = |uri: &str| {
            let page = HostedPage::new(&brand(), "Hello").form_target(uri);
            let policy = page.policy().to_str().unwrap().to_owned();
            policy.split("; ").find(|part| part.starts_with("form-action")).unwrap().trim_end().to_owned()
        };
        assert_eq!(policy("https://app.example/callback?x=1"), "form-action 'self' https://app.example");
        assert_eq!(policy("com.example.app:/done"), "form-action 'self' com.example.app:");
        for odd in ["no uri", "https://a.example;script-src/", "https://a,b/"] {
            assert_eq!(policy(odd), "form-action 'self'", "{odd}");
        }
    }
}
