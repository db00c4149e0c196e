//! `tenantry serve`: runs until it is told to stop, then finishes what it is doing.

use std::{
    fs::Permissions,
    io::{IsTerminal as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use service::installation::{FirstRun, Opening};
use tokio::{
    net::{TcpListener, UnixListener},
    signal::unix::{SignalKind, signal},
};
use web::{
    logging::{Format, Logging},
    server::{self, Listeners, Stopped},
};

use crate::{
    config::{Config, LogFormat},
    startup,
};

pub async fn run(config: Config) -> Result<(), String> {
    let _log = web::logging::init(&logging(&config)?).map_err(|error| startup::explain(&error))?;
    // The signals are caught before anything is opened, so that an early one is not lost.
    let stop = stop_signal()?;
    let listener = TcpListener::bind(config.listen)
        .await
        .map_err(|error| format!("Cannot listen on {}: {error}", config.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let config = config.listening_on(address);
    let service = startup::open(&config, Opening::Serve).await.map_err(|error| startup::explain(&error))?;
    let first = service.first_run().await.map_err(|error| startup::explain(&error))?;
    service.start();
    let socket = startup::socket(&config);
    let local = socket.as_deref().map(listen_locally).transpose()?;
    announce(&config, &service, first.as_ref());

    let limits = server::Limits { drain: config.drain, ..server::Limits::default() };
    let listeners = Listeners { network: listener, local };
    let stopped = server::serve(listeners, service.app(), limits, stop).await;
    // Before the folder is given up: the next server makes a socket of its own.
    if let Some(socket) = socket {
        let _ = std::fs::remove_file(socket);
    }
    service.close().await;
    match stopped {
        Stopped::Drained => tracing::info!("stopped; every request in work was answered"),
        Stopped::CutOff(count) => tracing::warn!(count, "stopped with connections still open"),
    }
    Ok(())
}

fn logging(config: &Config) -> Result<Logging, String> {
    let format = match config.log_format {
        LogFormat::Auto => Format::Auto,
        LogFormat::Text => Format::Readable,
        LogFormat::Json => Format::Json,
    };
    #[cfg(feature = "otel")]
    return Ok(Logging { filter: config.log.clone(), format, otlp_endpoint: config.otel_endpoint.clone() });
    #[cfg(not(feature = "otel"))]
    match config.otel_endpoint {
        Some(_) => {
            Err("otel_endpoint is set, but this build does not include OpenTelemetry; build it with --features otel."
                .into())
        }
        None => Ok(Logging { filter: config.log.clone(), format }),
    }
}

/// Resolves at SIGTERM or Ctrl-C.
fn stop_signal() -> Result<impl Future<Output = ()>, String> {
    let catch = |kind| signal(kind).map_err(|error| format!("Cannot watch for signals: {error}"));
    let (mut terminate, mut interrupt) = (catch(SignalKind::terminate())?, catch(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: finishing the requests in work");
    })
}

/// The socket for commands, which only the owner of the folder can open. One that is there was left by a server that was
/// killed: this one holds the folder's lock.
fn listen_locally(path: &Path) -> Result<UnixListener, String> {
    let _ = std::fs::remove_file(path);
    let bound = UnixListener::bind(path).and_then(|listener| {
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(listener)
    });
    bound.map_err(|error| format!("Cannot make the socket {}: {error}", path.display()))
}

/// For the person who started it: where it is and, the first time, how to begin.
fn announce(config: &Config, service: &service::Service, first: Option<&FirstRun>) {
    let base = &config.base_url;
    let operator = match service.operator_file() {
        Some(file) => format!("in {}", file.display()),
        None => "as configured".to_owned(),
    };
    let mut text = format!(
        "\nTenantry is running.\n\n  Base URL      {base}\n  API reference {base}/docs\n  Operator key  {operator}\n"
    );
    if let Some(FirstRun { app, api_key }) = first {
        text += &format!(
            "\nA first app was created for you. Save its key: it will not be shown again.\n\n  App id        {}\n  API key       {api_key}\n\n\
             Try it:\n\n  curl -H \"x-api-key: {api_key}\" {base}/account/app\n",
            app.id
        );
    }
    text += "\nPress Ctrl-C to stop.\n";
    // The key goes to standard output, for the person, and never to the log.
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    if !std::io::stdout().is_terminal() {
        tracing::info!(base_url = %base, "listening");
    }
}
