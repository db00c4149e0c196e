//! Log output: readable on a terminal, one JSON object per line otherwise, always on standard error so that what a
//! command prints stays its own. With the cargo feature `otel`, request spans are also sent to an OTLP collector.

use std::io::IsTerminal;

use kernel::{Error, Result};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt, filter_fn},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Readable when standard error is a terminal, JSON otherwise.
    #[default]
    Auto,
    Readable,
    Json,
}

#[derive(Clone, Debug, Default)]
pub struct Logging {
    /// Directives such as `info` or `warn,store=debug`; empty means `info`.
    pub filter: String,
    pub format: Format,
    /// Where request spans go, such as `http://localhost:4318/v1/traces`.
    #[cfg(feature = "otel")]
    pub otlp_endpoint: Option<String>,
}

/// Keeps the export of spans going; dropping it sends what is still waiting.
#[must_use = "dropping the guard ends the export of spans"]
#[derive(Default)]
pub struct Guard {
    #[cfg(feature = "otel")]
    _spans: Option<crate::otel::Spans>,
}

/// The target of request spans.
pub(crate) const SPAN_TARGET: &str = "trace";

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging for the whole process; a second call is an error.
pub fn init(logging: &Logging) -> Result<Guard> {
    let directives = if logging.filter.is_empty() { "info" } else { &logging.filter };
    let filter = EnvFilter::try_new(directives)
        .map_err(|error| Error::invalid("log filter", format!("is not understood: {error}")))?;
    // Request spans are for the exporter alone: each request has its log line already.
    let events = filter_fn(|metadata| metadata.target() != SPAN_TARGET);
    let lines = lines(logging.format).with_filter(filter.and(events)).boxed();
    let (layers, guard) = with_export(logging, lines)?;
    tracing_subscriber::registry().with(layers).try_init().map_err(Error::internal)?;
    Ok(guard)
}

#[cfg(not(feature = "otel"))]
fn with_export(_: &Logging, lines: BoxedLayer) -> Result<(Vec<BoxedLayer>, Guard)> {
    Ok((vec![lines], Guard::default()))
}

#[cfg(feature = "otel")]
fn with_export(logging: &Logging, lines: BoxedLayer) -> Result<(Vec<BoxedLayer>, Guard)> {
    let Some(endpoint) = &logging.otlp_endpoint else { return Ok((vec![lines], Guard::default())) };
    let (layer, spans) = crate::otel::export(endpoint)?;
    let layer = layer.with_filter(filter_fn(|metadata| metadata.target() == SPAN_TARGET)).boxed();
    Ok((vec![lines, layer], Guard { _spans: Some(spans) }))
}

fn lines(format: Format) -> BoxedLayer {
    let readable = match format {
        Format::Auto => std::io::stderr().is_terminal(),
        Format::Readable => true,
        Format::Json => false,
    };
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    if readable {
        layer.with_ansi(std::io::stderr().is_terminal()).compact().boxed()
    } else {
        layer.json().flatten_event(true).with_span_list(false).with_current_span(false).boxed()
    }
}
