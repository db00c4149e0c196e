//! The base of all hosted pages: one accessible layout without scripts, light and dark, in an app's own looks.
//!
//! A page loads nothing but its style sheets and the app's logo. An app's CSS is a style sheet of its own, and images
//! and fonts come only from here and the logo's origin, so that it cannot carry away what people type.

mod form;

use std::fmt::Write as _;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use kernel::Result;
use url::Url;

use crate::{Css, Describe, Escaped, Operation, Routes, WithHeaders};
pub use form::PostForm;

const STYLE: &str = include_str!("style.css");
const STYLE_PATH: &str = "/cloud-views/style.css";

/// The style sheet that all hosted pages share.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Routes<S> {
    Routes::new("Hosted pages").get(STYLE_PATH, style, "The style of the hosted pages").hidden()
}

async fn style() -> Result<WithHeaders<Css>> {
    Ok(WithHeaders::new(Css(STYLE.to_owned())).with(header::CACHE_CONTROL, "public, max-age=300"))
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

/// A page as an answer. What goes in is text; the page writes the HTML.
#[derive(Clone, Debug)]
pub struct HostedPage {
    status: StatusCode,
    brand: Brand,
    title: String,
    content: String,
}

impl HostedPage {
    pub fn new(brand: &Brand, title: &str) -> Self {
        Self { status: StatusCode::OK, brand: brand.clone(), title: title.to_owned(), content: String::new() }
    }

    #[must_use]
    pub fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    #[must_use]
    pub fn paragraph(self, text: &str) -> Self {
        self.push(format_args!("<p>{}</p>\n", Escaped(text)))
    }

    /// Something to read closely: an address, a code.
    #[must_use]
    pub fn highlight(self, text: &str) -> Self {
        self.push(format_args!("<p class=\"highlight\">{}</p>\n", Escaped(text)))
    }

    #[must_use]
    pub fn form(self, form: &PostForm) -> Self {
        self.push(format_args!("{form}"))
    }

    fn push(mut self, html: std::fmt::Arguments<'_>) -> Self {
        self.content.write_fmt(html).expect("a String takes any text");
        self
    }

    fn policy(&self) -> HeaderValue {
        let logo = self.brand.logo.as_deref().and_then(origin).unwrap_or_default();
        let policy = format!(
            "default-src 'none'; style-src 'self'; img-src 'self' {logo}; font-src 'self' {logo}; form-action 'self'; \
             frame-ancestors 'none'; base-uri 'none'"
        );
        HeaderValue::try_from(policy).expect("an origin is visible ASCII")
    }

    fn html(&self) -> String {
        let Self { brand, title, content, .. } = self;
        let own_style = brand.style.as_deref().map(|path| {
            let path = Escaped(path);
            format!("<link rel=\"stylesheet\" href=\"{path}\">\n")
        });
        let name = Escaped(&brand.app_name);
        let mark = match brand.logo.as_deref().filter(|logo| origin(logo).is_some()) {
            Some(logo) => format!("<img class=\"logo\" src=\"{}\" alt=\"{name}\">", Escaped(logo)),
            None => format!("<span class=\"name\">{name}</span>"),
        };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"robots\" content=\"noindex\">\n\
             <title>{title} – {name}</title>\n<link rel=\"stylesheet\" href=\"{STYLE_PATH}\">\n{own_style}</head>\n\
             <body>\n<header class=\"brand\">{mark}</header>\n<main class=\"card\">\n<h1>{title}</h1>\n\
             {content}</main>\n</body>\n</html>\n",
            title = Escaped(title),
            own_style = own_style.unwrap_or_default(),
        )
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
        let mut response = Response::new(Body::from(self.html()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy());
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
        assert!(!html.contains("<script") && !html.contains("<i>") && !html.contains("<b>") && !html.contains("<now"));
        assert!(html.contains("R&amp;D") && html.contains("?a=1&amp;b=2"));
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
        assert!(!policy(None).contains("unsafe"));
    }
}
