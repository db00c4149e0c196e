//! Sends request spans to an OTLP collector over HTTP, in batches off the request path.

use kernel::{Error, Result};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing_subscriber::{Layer, Registry};

/// The running export.
pub(crate) struct Spans(SdkTracerProvider);

impl Drop for Spans {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last spans could not be exported");
        }
    }
}

/// A layer that exports to `endpoint`, the full URL of the collector's trace intake.
pub(crate) fn export(endpoint: &str) -> Result<(impl Layer<Registry> + Send + Sync + use<>, Spans)> {
    let exporter = SpanExporter::builder().with_http().with_endpoint(endpoint).build().map_err(Error::internal)?;
    let resource = Resource::builder().with_service_name("tenantry").build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("tenantry"));
    Ok((layer, Spans(provider)))
}
