//! What a batch is made of, as it goes over the wire.

use kernel::{Email, Locale, Name, OptionalName, Problems, WebUrl, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{
    apps::parameters::Parameters,
    workspaces::{MAX_METADATA, Metadata},
};
use vault::passwords::{DigestAlgorithm, Imported, Pepper, PepperPosition};
use web::Validate;

use super::{MOST_TENANTS, MOST_USERS};

/// Up to 10,000 workspaces with 100,000 users.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read item by item; this is what the document shows of it")]
pub(crate) struct ImportBatch(#[schemars(length(max = MOST_TENANTS))] Vec<ImportItem>);

/// One workspace with its people.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "members are read one by one; this is what the document shows of them")]
struct ImportItem {
    tenant: ImportTenant,
    /// Beside the owner.
    #[schemars(length(max = MOST_USERS))]
    #[serde(default)]
    users: Vec<ImportUser>,
}

/// A workspace to be made.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct ImportTenant {
    pub(crate) owner: ImportUser,
    /// The owner's full name without it, else their address.
    pub(crate) name: Option<Name>,
    /// The key of a plan of the app.
    pub(crate) plan: Option<Words>,
    /// An absolute http or https URL.
    pub(crate) logo: Option<WebUrl>,
    #[schemars(extend("x-maxBytes" = MAX_METADATA))]
    pub(crate) metadata: Option<Metadata>,
    /// English without it.
    pub(crate) locale: Option<Locale>,
    pub(crate) onboarded: Option<bool>,
}

/// Somebody who becomes a member.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportUser {
    /// The person's email address.
    pub(crate) username: Email,
    /// A role's key; the app's default role without it. An owner is OWNER.
    pub(crate) role: Option<Words>,
    pub(crate) first_name: Option<OptionalName>,
    pub(crate) last_name: Option<OptionalName>,
    pub(crate) password: Option<ImportPassword>,
    pub(crate) onboarded: Option<bool>,
    /// Whether the other system has proven that the address is theirs.
    pub(crate) email_verified: Option<bool>,
    /// What the app keeps about the member.
    pub(crate) parameters: Option<Parameters>,
}

/// The digest of a password, which counts for one login and is then replaced.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct ImportPassword {
    /// A bcrypt digest, a PHC string, or a plain hash in hex or base64.
    #[schemars(length(min = 1, max = 1_024))]
    value: String,
    algorithm: DigestAlgorithm,
    pepper: Option<ImportPepper>,
}

/// What was put before or after each password before it was digested.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
struct ImportPepper {
    #[schemars(length(min = 1, max = 1_024))]
    value: String,
    position: PepperPosition,
}

/// Says neither digest nor pepper.
impl std::fmt::Debug for ImportPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ImportPassword({:?})", self.algorithm)
    }
}

impl ImportPassword {
    pub(crate) fn to_imported(&self) -> Imported {
        let pepper = self.pepper.as_ref();
        Imported {
            algorithm: self.algorithm,
            value: self.value.clone(),
            pepper: pepper.map(|pepper| Pepper { value: pepper.value.clone(), position: pepper.position }),
        }
    }
}

/// An [`ImportUser`] as most are: every member that is given is here, and is a text with a rule of its own or a boolean.
/// Nothing else is left for the schema to say.
#[derive(Deserialize)]
#[serde(remote = "ImportUser", rename_all = "camelCase", deny_unknown_fields)]
struct OrdinaryUser {
    username: Email,
    role: Option<Words>,
    first_name: Option<OptionalName>,
    last_name: Option<OptionalName>,
    #[serde(skip)]
    password: Option<ImportPassword>,
    onboarded: Option<bool>,
    email_verified: Option<bool>,
    #[serde(skip)]
    parameters: Option<Parameters>,
}

impl ImportUser {
    /// Somebody with whom all is right and usual, in one pass over their JSON. `None` says only that a closer look is needed,
    /// which finds the words for what is wrong.
    pub(super) fn ordinary(json: &[u8]) -> Option<Self> {
        // Serde takes a list for an object.
        json.first().filter(|byte| **byte == b'{')?;
        let mut json = serde_json::Deserializer::from_slice(json);
        let user = OrdinaryUser::deserialize(&mut json).ok()?;
        json.end().ok().map(|()| user)
    }

    fn judge(&self, prefix: &str, problems: &mut Problems) {
        if let Some(Err(problem)) = self.password.as_ref().map(|password| password.to_imported().check()) {
            problems.add(format!("{prefix}password.value"), problem);
        }
    }
}

impl Validate for ImportUser {
    fn validate(&self, problems: &mut Problems) {
        self.judge("", problems);
    }
}

impl Validate for ImportTenant {
    fn validate(&self, problems: &mut Problems) {
        self.owner.judge("owner.", problems);
    }
}
