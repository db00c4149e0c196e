//! `tenantry serve`: runs until it is told to stop, then finishes what it is doing.

use std::{
    fs::Permissions,
    io::{IsTerminal as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use service::installation::FirstRun;
use tenancy::apps::demo_address;
use tokio::{
    net::{TcpListener, UnixListener},
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use web::{
    logging::{Format, Logging},
    server::{self, Listeners, Stopped},
};

use crate::{
    config::{Config, LogFormat},
    startup,
};

pub async fn run(config: Config, after_move: bool) -> Result<(), String> {
    let _log = web::logging::init(&logging(&config)?).map_err(|error| startup::explain(&error))?;
    // The signals are caught before anything is opened, so that an early one is not lost.
    let signals = stop_signals()?;
    let listener = TcpListener::bind(config.listen)
        .await
        .map_err(|error| format!("Cannot listen on {}: {error}", config.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let config = config.listening_on(address);
    warn(&config);
    let service = startup::serve(&config, after_move).await.map_err(|error| startup::explain(&error))?;
    let first = service.first_run().await.map_err(|error| startup::explain(&error))?;
    service.start();
    let socket = startup::socket(&config);
    let local = socket.as_deref().map(listen_locally).transpose()?;
    announce(&config, &service, first.as_ref())?;

    let limits = server::Limits {
        drain: config.drain,
        max_connections: config.connections,
        max_connections_per_address: config.connections_per_address,
        ..server::Limits::default()
    };
    let listeners = Listeners { network: listener, local };
    let stop = async {
        nth(signals.clone(), 1).await;
        tracing::info!("stopping: finishing the requests in work; a second signal hurries");
        service.announce_stop();
        tokio::time::sleep(config.lame_duck).await;
        service.end_streams();
    };
    let stopped = tokio::select! {
        stopped = server::serve(listeners, service.app(), limits, stop) => Some(stopped),
        () = nth(signals.clone(), 2) => None,
    };
    // Before the folder is given up: the next server makes a socket of its own.
    if let Some(socket) = socket {
        let _ = std::fs::remove_file(socket);
    }
    service.close().await;
    match stopped {
        Some(Stopped::Drained) => tracing::info!("stopped; every request in work was answered"),
        Some(Stopped::CutOff(count)) => tracing::warn!(count, "stopped with connections still open"),
        None => tracing::warn!("stopped in a hurry"),
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

/// Counts SIGTERM and Ctrl-C.
fn stop_signals() -> Result<watch::Receiver<u32>, String> {
    let catch = |kind| signal(kind).map_err(|error| format!("Cannot watch for signals: {error}"));
    let (mut terminate, mut interrupt) = (catch(SignalKind::terminate())?, catch(SignalKind::interrupt())?);
    let (count, signals) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            count.send_modify(|count| *count += 1);
        }
    });
    Ok(signals)
}

/// Resolves when that many signals have come.
async fn nth(mut signals: watch::Receiver<u32>, number: u32) {
    if signals.wait_for(|count| *count >= number).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What is most likely not meant.
fn warn(config: &Config) {
    if !config.base_url_given && !config.listen.ip().is_loopback() {
        tracing::warn!(
            base_url = config.base_url,
            "base_url is not set: this address will stand in tokens and mailed links; set it to the public one"
        );
    }
    if config.base_url.starts_with("https://") && config.trusted_proxies.is_empty() {
        tracing::warn!(
            "base_url is https, so a proxy stands in front, and no proxy is trusted: all clients will count as one \
             address; set trusted_proxies"
        );
    }
    if config.test_clock {
        tracing::warn!("the test clock is on: whoever has the operator key can move the time; not for production");
    }
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
fn announce(config: &Config, service: &service::Service, first: Option<&FirstRun>) -> Result<(), String> {
    let base = &config.base_url;
    let operator = match service.operator_file() {
        Some(file) => format!("in {}", file.display()),
        None => "as configured".to_owned(),
    };
    let mut text = format!(
        "\nTenantry is running.\n\n  Base URL      {base}\n  API reference {base}/docs\n  Operator key  {operator}\n"
    );
    if let Some(FirstRun { app, api_key }) = first {
        let (key, sent) = shown(config, api_key)?;
        text += &format!(
            "\nA first app was created for you. Save its key: it will not be shown again.\n\n  App id        {}\n  API key       {key}\n\n\
             Try it:\n\n  curl -H \"x-api-key: {sent}\" {base}/account/app\n",
            app.id
        );
        if let Some(demo) = demo_address(base) {
            text += &format!("  {demo}?app={}   (a login, in a browser)\n", app.id);
        }
    }
    text += "\nPress Ctrl-C to stop.\n";
    // The key goes to standard output, for the person, and never to the log.
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    if !std::io::stdout().is_terminal() {
        tracing::info!(base_url = %base, "listening");
    }
    Ok(())
}

/// How the first key is told, and how a command gets it. What is not a terminal may be kept for years, by the system's
/// log for one: there the key goes into a file.
fn shown(config: &Config, api_key: &str) -> Result<(String, String), String> {
    if std::io::stdout().is_terminal() {
        return Ok((api_key.to_owned(), api_key.to_owned()));
    }
    let file = config.data_dir.join("first-app.key");
    store::private::claim_file(&file)
        .and_then(|()| std::fs::write(&file, format!("{api_key}\n")))
        .map_err(|error| format!("Cannot write {}: {error}", file.display()))?;
    Ok((format!("in {}", file.display()), format!("$(cat {})", file.display())))
}
