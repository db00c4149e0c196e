//! Stands between the service and PostgreSQL, and breaks a connection at the moment its COMMIT or a
//! single statement passes.

use std::sync::{Arc, Mutex};

use kernel::Secret;
use store::DatabaseUrl;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// What befalls the next message that is waited for.
pub(crate) enum Cut {
    /// The server never sees it, but sees the connection end.
    BeforeTheServer,
    /// The server never sees it and takes the connection for alive.
    BeforeTheServerUnnoticed,
    /// The server has committed; its answer is lost.
    AfterTheServer,
    /// As before, and then something happens to the server before anybody can connect again.
    AfterTheServerAnd(Box<dyn FnOnce() + Send>),
}

pub(crate) struct Proxy {
    port: u16,
    next: Arc<Mutex<Option<Waiting>>>,
}

struct Waiting {
    message: &'static [u8],
    cut: Cut,
}

/// The simple query that a commit is: type, length, text and a closing zero.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
/// The end of a prepared statement's run: execute all of it, and be through.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";

impl Proxy {
    pub(crate) async fn before(url: &DatabaseUrl) -> Self {
        let (_, server) = split(url);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let next = Arc::new(Mutex::new(None));
        let cuts = next.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // A server that is away closes the connection at once.
                if let Ok(server) = TcpStream::connect(&server).await {
                    tokio::spawn(relay(client, server, cuts.clone()));
                }
            }
        });
        Self { port, next }
    }

    /// The same database, through here.
    pub(crate) fn url(&self, url: &DatabaseUrl) -> DatabaseUrl {
        let (text, server) = split(url);
        DatabaseUrl::Postgres(Secret::new(text.replace(&server, &format!("127.0.0.1:{}", self.port))))
    }

    /// Cuts the next COMMIT.
    pub(crate) fn cut(&self, cut: Cut) {
        self.cut_at(COMMIT, cut);
    }

    /// Cuts the next run of a statement.
    pub(crate) fn cut_statement(&self, cut: Cut) {
        self.cut_at(EXECUTE, cut);
    }

    fn cut_at(&self, message: &'static [u8], cut: Cut) {
        *self.next.lock().expect("not poisoned") = Some(Waiting { message, cut });
    }
}

/// The URL's text, and its host with port.
fn split(url: &DatabaseUrl) -> (String, String) {
    let DatabaseUrl::Postgres(text) = url else { panic!("not PostgreSQL") };
    let rest = text.expose().split_once('@').expect("the URL names a user").1;
    (text.expose().clone(), rest.split('/').next().expect("the URL names a host").to_owned())
}

async fn relay(mut client: TcpStream, mut server: TcpStream, cuts: Arc<Mutex<Option<Waiting>>>) {
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(count @ 1..) = read else { return };
                let waiting = cuts.lock().expect("not poisoned").take_if(|next| asked[..count].ends_with(next.message));
                if let Some(Waiting { cut, .. }) = waiting {
                    return end(cut, server, &asked[..count], client).await;
                }
                if server.write_all(&asked[..count]).await.is_err() { return }
            }
            read = server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                if client.write_all(&answered[..count]).await.is_err() { return }
            }
        }
    }
}

async fn end(cut: Cut, mut server: TcpStream, message: &[u8], client: TcpStream) {
    let mut answer = [0; 64];
    match cut {
        Cut::BeforeTheServer => {}
        Cut::BeforeTheServerUnnoticed => {
            drop(client);
            // Ends when the server itself ends the session.
            let _ = server.read(&mut answer).await;
        }
        Cut::AfterTheServer => {
            server.write_all(message).await.expect("the server is there");
            server.read_exact(&mut answer[..1]).await.expect("the server answers");
        }
        Cut::AfterTheServerAnd(happens) => {
            server.write_all(message).await.expect("the server is there");
            server.read_exact(&mut answer[..1]).await.expect("the server answers");
            tokio::task::spawn_blocking(happens).await.expect("it happens");
        }
    }
}
