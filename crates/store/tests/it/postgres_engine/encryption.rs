//! TLS to the server: encrypted where it can be, checked as far as the URL asks.

use std::io::Write as _;

use kernel::{Code, Error, Result, Secret};
use store::{DatabaseUrl, Limits, testing::OwnPostgres};

use super::{ask, on_runtime, open, text};

/// An authority and a certificate by it for 127.0.0.1, made by the server's own user inside its data folder.
const MAKE_CERTIFICATES: &str = "COPY (SELECT 1) TO PROGRAM '
    exec >/dev/null 2>&1; set -e
    openssl req -new -x509 -nodes -days 2 -subj /CN=authority -keyout authority.key -out authority.crt
    openssl req -new -nodes -subj /CN=server -keyout server.key -out server.csr
    echo subjectAltName=IP:127.0.0.1 >server.ext
    openssl x509 -req -days 2 -in server.csr -CA authority.crt -CAkey authority.key -CAcreateserial -extfile server.ext -out server.crt'";
const ENCRYPTED: &str = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                         WHERE ssl AND application_name = 'tenantry'";

struct Server {
    postgres: OwnPostgres,
    authority: tempfile::NamedTempFile,
}

impl Server {
    fn start() -> Self {
        let postgres = OwnPostgres::start_new();
        for sql in [MAKE_CERTIFICATES, "ALTER SYSTEM SET ssl = on"] {
            super::run(&postgres.url(), sql);
        }
        postgres.restart_fast();
        let mut authority = tempfile::NamedTempFile::new().expect("a file can be made");
        let certificate = text(&postgres.url(), "SELECT pg_read_file('authority.crt')");
        authority.write_all(certificate.as_bytes()).expect("the file can be written");
        Self { postgres, authority }
    }

    /// How many encrypted sessions there are when each path has one.
    async fn encrypted_sessions(&self, host: &str, query: &str) -> Result<i64> {
        let DatabaseUrl::Postgres(url) = self.postgres.url() else { panic!("not PostgreSQL") };
        let url = format!("{}?{query}", url.expose().replace("127.0.0.1", host));
        let db = open(DatabaseUrl::Postgres(Secret::new(url)), Limits::default()).await?;
        db.ping().await?;
        db.read(|tx| tx.one::<(i64,)>("SELECT CAST(1 AS BIGINT)", &[])).await?;
        let count = ask(&self.postgres.url(), ENCRYPTED);
        db.close().await;
        Ok(count)
    }
}

#[test]
fn connections_are_encrypted_and_checked_as_the_url_asks() {
    let server = Server::start();
    on_runtime(async {
        let authority = format!("sslrootcert={}", server.authority.path().display());
        let sessions = async |host, query: &str| server.encrypted_sessions(host, query).await;
        let refusal = |outcome: Result<i64>| -> Error { outcome.expect_err("refused") };

        assert_eq!(sessions("127.0.0.1", "sslmode=disable").await.expect("connected"), 0);
        assert_eq!(sessions("127.0.0.1", "").await.expect("connected"), 3);
        assert_eq!(sessions("127.0.0.1", "sslmode=require").await.expect("connected"), 3);
        assert_eq!(sessions("127.0.0.1", &format!("sslmode=verify-full&{authority}")).await.expect("trusted"), 3);
        // Signed by the right authority, but made out to another name.
        assert_eq!(sessions("localhost", &format!("sslmode=verify-ca&{authority}")).await.expect("trusted"), 3);
        let error = refusal(sessions("localhost", &format!("sslmode=verify-full&{authority}")).await);
        assert_eq!(error.code(), Code::StorageUnavailable);
        assert!(error.public().contains("not valid for name"), "{error}");
        // Signed by an authority that this machine does not know.
        let error = refusal(sessions("127.0.0.1", "sslmode=verify-full").await);
        assert!(error.public().contains("UnknownIssuer") || error.public().contains("no authority"), "{error}");
    });
}
