//! `/account/federation/metadata`: reads an identity provider's SAML metadata, to fill in a connection with. Nothing is kept.

use kernel::{Code, Error, Problems, Result, WebUrl};
use saml::metadata::{IdentityProvider, read};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::outbound::Failure;
use tenancy::{
    callers::{AppCaller, AppWrite},
    federation::RequestMethod,
};
use web::{Json, Routes, State, Valid, Validate};

use super::oidc;
use crate::Identity;

pub(super) fn routes() -> Routes<Identity> {
    Routes::new("Federation")
        .post("/account/federation/metadata", fill_in, "Read an identity provider's SAML metadata")
        .answers(502, "The metadata cannot be fetched")
}

/// The body of `POST /account/federation/metadata`: one of the two.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MetadataSource {
    /// The document itself.
    #[schemars(length(max = 262_144))]
    metadata_xml: Option<String>,
    /// Where it is.
    metadata_url: Option<WebUrl>,
}

impl Validate for MetadataSource {
    fn validate(&self, problems: &mut Problems) {
        let is_one = self.metadata_xml.is_some() != self.metadata_url.is_some();
        problems.check("metadataXml", is_one, "or metadataUrl is required, and not both");
    }
}

/// What a connection is filled in with.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FilledIn {
    login_url: String,
    request_method: RequestMethod,
    certificate: String,
    idp_entity_id: String,
}

impl From<IdentityProvider> for FilledIn {
    fn from(read: IdentityProvider) -> Self {
        Self {
            login_url: read.login_url,
            request_method: if read.posts { RequestMethod::Post } else { RequestMethod::Get },
            certificate: read.certificates,
            idp_entity_id: read.entity_id,
        }
    }
}

async fn fill_in(
    _: AppCaller<AppWrite>,
    State(identity): State<Identity>,
    Valid(source): Valid<MetadataSource>,
) -> Result<Json<FilledIn>> {
    let (field, xml) = match (&source.metadata_xml, &source.metadata_url) {
        (Some(xml), _) => ("metadataXml", xml.clone()),
        (None, url) => ("metadataUrl", fetched(&identity, url.as_deref().unwrap_or_default()).await?),
    };
    let provider =
        read(&xml).map_err(|invalid| Error::invalid(field, format!("cannot be used: the metadata {}", invalid.0)))?;
    Ok(Json(provider.into()))
}

async fn fetched(identity: &Identity, url: &str) -> Result<String> {
    let failed = |reason: &str| Error::new(Code::ProviderFailed, format!("The metadata cannot be fetched: {reason}."));
    let answer = oidc::fetch(&identity.federation.directory, url).await.map_err(|failure| match failure {
        Failure::Refused => Error::invalid("metadataUrl", "must be a public http or https address"),
        other => failed(&other.to_string()),
    })?;
    match answer.status.as_u16() {
        200 => String::from_utf8(answer.body).map_err(|_| failed("it is not UTF-8")),
        status => Err(failed(&format!("the provider answered {status}"))),
    }
}
