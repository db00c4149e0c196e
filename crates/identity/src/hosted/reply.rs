//! What a hosted page's handler answers: a page, or the way to another one, with the cookies that go along.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use kernel::Error;
use web::{Describe, Failure, Operation, pages::HostedPage};

/// A page or a redirect.
pub struct Reply {
    content: ReplyContent,
    cookies: Vec<HeaderValue>,
    is_passing: bool,
}

enum ReplyContent {
    Page(Box<HostedPage>),
    Elsewhere(StatusCode, String),
}

impl Reply {
    pub fn page(page: HostedPage) -> Self {
        Self::of(ReplyContent::Page(Box::new(page)))
    }

    /// After a GET.
    pub fn found(location: String) -> Self {
        Self::to(StatusCode::FOUND, location)
    }

    /// After a form was sent: going back must not send it again.
    pub fn see(location: String) -> Self {
        Self::to(StatusCode::SEE_OTHER, location)
    }

    pub(super) fn to(status: StatusCode, location: String) -> Self {
        Self::of(ReplyContent::Elsewhere(status, location))
    }

    fn of(content: ReplyContent) -> Self {
        Self { content, cookies: Vec::new(), is_passing: false }
    }

    /// For a form that did nothing: sent again, it may do something.
    #[must_use]
    pub(super) fn passing(self) -> Self {
        Self { is_passing: true, ..self }
    }

    pub(super) fn is_passing(&self) -> bool {
        self.is_passing
    }

    /// The status and the address of a redirect.
    pub(super) fn elsewhere(&self) -> Option<(StatusCode, &str)> {
        match &self.content {
            ReplyContent::Elsewhere(status, location) => Some((*status, location)),
            ReplyContent::Page(_) => None,
        }
    }

    pub(super) fn cookies(&self) -> &[HeaderValue] {
        &self.cookies
    }

    #[must_use]
    pub fn with_cookie(mut self, cookie: HeaderValue) -> Self {
        self.cookies.push(cookie);
        self
    }

    #[must_use]
    pub fn with_cookies(mut self, cookies: impl IntoIterator<Item = HeaderValue>) -> Self {
        self.cookies.extend(cookies);
        self
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let mut response = match self.content {
            ReplyContent::Page(page) => page.into_response(),
            ReplyContent::Elsewhere(status, location) => match HeaderValue::try_from(location) {
                Ok(location) => (status, [(header::LOCATION, location)]).into_response(),
                Err(error) => Failure::from(Error::internal(error)).into_response(),
            },
        };
        for cookie in self.cookies {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }
}

impl Describe for Reply {
    fn describe(operation: &mut Operation) {
        operation.empty_answer(StatusCode::FOUND);
    }
}
