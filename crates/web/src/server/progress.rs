//! Clients that do not read: an answer has to leave at some pace, or its connection ends.
//!
//! Two places can be stuck. The socket takes nothing more, which [`Unstuck`] sees; or, with HTTP/2, the client grants a
//! stream no window, which [`Answers`] sees by pieces of an answer that are not asked for.

use std::{
    collections::HashMap,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::{Body, HttpBody};
use bytes::{Buf, Bytes};
use hyper::body::{Frame, SizeHint};
use kernel::{Tick, Ticker};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// A stream that fails when nothing could be written for so long.
pub(super) struct Unstuck<S> {
    stream: S,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Unstuck<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    fn judge<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unstuck<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.judge(context, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(context, pieces);
        this.judge(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_flush(context);
        this.judge(context, outcome)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_shutdown(context);
        this.judge(context, outcome)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unstuck<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

/// What one connection has in work, and which pieces of answers wait for the client to take them.
pub(super) struct Answers {
    in_work: AtomicUsize,
    requests: AtomicU64,
    next: AtomicU64,
    handed_over: Mutex<HashMap<u64, Tick>>,
}

/// Something of a connection that is not finished.
pub(super) struct InWork(Arc<Answers>);

impl Drop for InWork {
    fn drop(&mut self) {
        self.0.in_work.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Answers {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            in_work: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            next: AtomicU64::new(0),
            handed_over: Mutex::default(),
        })
    }

    pub(super) fn begin(self: &Arc<Self>) -> InWork {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.in_work.fetch_add(1, Ordering::Relaxed);
        InWork(Arc::clone(self))
    }

    /// How many requests there were so far, and whether one is in work.
    pub(super) fn seen(&self) -> (u64, bool) {
        (self.requests.load(Ordering::Relaxed), self.in_work.load(Ordering::Relaxed) > 0)
    }

    /// Whether some piece was not taken for so long.
    pub(super) fn are_stuck(&self, patience: Duration) -> bool {
        self.waiting().values().any(|since| Ticker.since(*since) > patience)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Tick>> {
        self.handed_over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A large or open-ended answer leaves piece by piece and counts as work until it has left.
    pub(super) fn watch(self: &Arc<Self>, body: Body, in_work: InWork) -> Body {
        if body.size_hint().exact().is_some_and(|length| length <= PIECE as u64) {
            return body;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        Body::new(Watched { id, body, rest: Bytes::new(), handed_over: false, in_work })
    }
}

const PIECE: usize = 16 * 1024;

struct Watched {
    id: u64,
    body: Body,
    rest: Bytes,
    handed_over: bool,
    in_work: InWork,
}

impl Watched {
    fn hand_over(&mut self) -> Frame<Bytes> {
        self.handed_over = true;
        self.in_work.0.waiting().insert(self.id, Ticker.now());
        let piece = self.rest.split_to(self.rest.remaining().min(PIECE));
        Frame::data(piece)
    }

    /// Whoever asks for the next piece has taken the last one.
    fn taken(&mut self) {
        if std::mem::take(&mut self.handed_over) {
            self.in_work.0.waiting().remove(&self.id);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.taken();
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        this.taken();
        while this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return Poll::Ready(other),
            }
        }
        Poll::Ready(Some(Ok(this.hand_over())))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        match hint.exact() {
            Some(length) => hint.set_exact(length + rest),
            None => hint.set_lower(hint.lower() + rest),
        }
        hint
    }
}
