//! Plain async functions as handlers: `async fn(E1, E2, …) -> Result<R>`. Each argument and the answer describe
//! themselves, so that a handler's signature is its documentation.

use std::future::Future;

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};

use crate::{Describe, Failure, Operation};

/// An async function whose arguments are extractors and whose answer is a `kernel::Result`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "a handler is an `async fn` of at most 8 extractors that all implement `web::Describe`, the body's last, \
            and returns `kernel::Result<R>` with `R: web::Describe + IntoResponse`"
)]
pub trait Handler<M, S>: Clone + Send + Sync + 'static {
    fn describe(operation: &mut Operation);
    fn call(&self, request: Request, state: &S) -> impl Future<Output = Response> + Send;
}

fn answer<R: IntoResponse, E: Into<Failure>>(result: Result<R, E>) -> Response {
    match result {
        Ok(answer) => answer.into_response(),
        Err(error) => error.into().into_response(),
    }
}

impl<F, Fut, R, E, S> Handler<((),), S> for F
where
    F: Fn() -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send,
    R: IntoResponse + Describe,
    E: Into<Failure>,
    S: Sync,
{
    fn describe(operation: &mut Operation) {
        R::describe(operation);
    }

    async fn call(&self, _: Request, _: &S) -> Response {
        answer(self().await)
    }
}

macro_rules! handler {
    ($($part:ident)* ; $last:ident) => {
        impl<F, Fut, R, E, S, M, $($part,)* $last> Handler<(M, $($part,)* $last,), S> for F
        where
            F: Fn($($part,)* $last) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = Result<R, E>> + Send,
            R: IntoResponse + Describe,
            E: Into<Failure>,
            S: Send + Sync + 'static,
            $($part: FromRequestParts<S, Rejection: Into<Failure>> + Describe + Send,)*
            $last: FromRequest<S, M, Rejection: Into<Failure>> + Describe + Send,
        {
            fn describe(operation: &mut Operation) {
                $($part::describe(operation);)*
                $last::describe(operation);
                R::describe(operation);
            }

            #[allow(non_snake_case, unused_mut)]
            async fn call(&self, request: Request, state: &S) -> Response {
                let (mut parts, body) = request.into_parts();
                $(let $part = match $part::from_request_parts(&mut parts, state).await {
                    Ok(value) => value,
                    Err(rejection) => return rejection.into().into_response(),
                };)*
                let $last = match $last::from_request(Request::from_parts(parts, body), state).await {
                    Ok(value) => value,
                    Err(rejection) => return rejection.into().into_response(),
                };
                answer(self($($part,)* $last).await)
            }
        }
    };
}

handler!(; A);
handler!(A; B);
handler!(A B; C);
handler!(A B C; D);
handler!(A B C D; G);
handler!(A B C D G; H);
handler!(A B C D G H; I);
handler!(A B C D G H I; J);
