//! The server with a workspace that has an identity provider and a directory, seen from outside.

use std::{net::SocketAddr, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bench::{
    Result,
    child::Child,
    client::{Connection, Request},
    process,
};
use serde_json::{Value, json};
use url::{Url, form_urlencoded::byte_serialize};

use super::provider::{ENTITY_ID, Provider};

const CALLBACK: &str = "https://app.example/callback";

pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// Where the same process verifies signatures and writes.
    pub beside: SocketAddr,
    /// The header line of a key of the app.
    pub key: String,
    /// The header line of the workspace's directory.
    pub directory: String,
    connection: String,
    pub provider: Provider,
    pub acs_url: String,
    pub entity_id: String,
}

impl Server {
    pub async fn start(database: Option<&str>) -> Result<Self> {
        let mut arguments = vec!["--serve"];
        arguments.extend(database.into_iter().flat_map(|url| ["--database", url]));
        let child = Child::start(&arguments)?;
        let (address, key) = (child.text("address").parse()?, format!("x-api-key: {}", child.text("key")));
        let provider = Provider::new()?;

        let app = json!({ "redirectUris": [CALLBACK], "defaultCallbackUri": CALLBACK });
        told(address, Request::put("/account/app", &key, &app.to_string())).await?;
        let owner = json!({ "email": "owner@bench.example", "firstName": "Ada", "lastName": "Lovelace" });
        let workspace = json!({ "owner": owner, "name": "Engines" }).to_string();
        let workspace = told(address, Request::post("/account/tenant", &key, &workspace).expecting(200)).await?;
        let workspace = text(&workspace, "id")?;
        let connection = json!({
            "name": "Directory", "loginUrl": "https://idp.example/sso", "certificate": provider.certificate(),
            "idpEntityId": ENTITY_ID,
        });
        let connection =
            told(address, Request::post("/account/federation/connection", &key, &connection.to_string())).await?;
        let connection = text(&connection, "id")?;
        let used = json!({ "federationConnection": connection }).to_string();
        told(address, Request::put(&format!("/account/tenant/{workspace}"), &key, &used)).await?;
        let path = format!("/account/federation/connection/{connection}");
        let shown = told(address, Request::get(&path, &key)).await?;
        let in_workspace = format!("{key}\r\nx-tenant-id: {workspace}");
        let token =
            told(address, Request::post("/account/scim/token", &in_workspace, r#"{"name":"Directory"}"#)).await?;
        Ok(Self {
            address,
            beside: child.text("beside").parse()?,
            key,
            directory: format!("authorization: Bearer {}", text(&token, "token")?),
            connection,
            provider,
            acs_url: text(&shown, "acsUrl")?,
            entity_id: text(&shown, "entityId")?,
            child,
        })
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn cpu(&self) -> Result<Duration> {
        process::cpu_time(self.process())
    }

    fn path(&self, what: &str) -> String {
        format!("/auth/federation/saml/{}/{what}", self.connection)
    }

    /// Begins so many logins; what each expects to get back as `RelayState`.
    pub async fn begin(&self, count: usize) -> Result<Vec<String>> {
        let request = Request::get(&self.path("login"), "").expecting(302);
        let mut connection = Connection::open(self.address, request).await?;
        let mut begun = Vec::with_capacity(count);
        for _ in 0..count {
            connection.ask().await?;
            let location = Url::parse(connection.header("location").ok_or("a redirect to nowhere")?)?;
            let state = location.query_pairs().find(|(name, _)| name == "RelayState").ok_or("no RelayState")?;
            begun.push(state.1.into_owned());
        }
        Ok(begun)
    }

    /// What an identity provider's page posts.
    pub fn answer(&self, xml: &str, relay_state: &str) -> Request {
        let encoded = BASE64_STANDARD.encode(xml);
        let encoded: String = byte_serialize(encoded.as_bytes()).collect();
        Request::form(&self.path("acs"), &format!("SAMLResponse={encoded}&RelayState={relay_state}"))
    }

    /// The same with every letter escaped, which is as long as a form can be.
    pub fn escaped_answer(&self, xml: &str, relay_state: &str) -> Request {
        let encoded: String = BASE64_STANDARD.encode(xml).bytes().map(|byte| format!("%{byte:02X}")).collect();
        Request::form(&self.path("acs"), &format!("SAMLResponse={encoded}&RelayState={relay_state}"))
    }

    /// The certificate that assertions are encrypted for, in DER.
    pub async fn encryption_certificate(&self) -> Result<Vec<u8>> {
        let mut connection = Connection::open(self.address, Request::get(&self.path("metadata"), "")).await?;
        let metadata = String::from_utf8(connection.ask().await?.to_vec())?;
        let (_, described) = metadata.split_once("use=\"encryption\"").ok_or("no encryption key")?;
        let (_, certificate) = described.split_once("<ds:X509Certificate>").ok_or("no certificate")?;
        Ok(BASE64_STANDARD.decode(certificate.split('<').next().unwrap_or_default())?)
    }
}

async fn told(address: SocketAddr, request: Request) -> Result<Value> {
    let mut connection = Connection::open(address, request).await?;
    Ok(serde_json::from_slice(connection.ask().await?)?)
}

fn text(told: &Value, name: &str) -> Result<String> {
    Ok(told[name].as_str().ok_or_else(|| format!("{name} is missing in {told}"))?.to_owned())
}
