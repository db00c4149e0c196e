//! What one operation takes, asks for and answers. Extractors and answers describe themselves into it through
//! [`Describe`], so that the documentation is a consequence of the handler's signature.

use std::collections::BTreeMap;

use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Who may call an operation. Set by the caller extractor; without one the operation is public.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Anybody.
    #[default]
    Public,
    /// The operator of this installation: `Authorization: Bearer <operator key>`.
    Operator,
    /// An app API key or API token in `x-api-key`.
    Key { privilege: Option<&'static str> },
    /// A key that names the workspace it acts in: `x-api-key` and `x-tenant-id`.
    KeyWithTenant { privilege: Option<&'static str> },
    /// A key, or a signed-in user's access token.
    KeyOrUser { privilege: Option<&'static str> },
    /// A signed-in user: access token and `x-app-id`.
    User { permission: Option<&'static str> },
    /// A signed-in user by access token alone.
    Bearer { permission: Option<&'static str> },
    /// A signed-in user as in `User`, or a key as in `KeyWithTenant`.
    UserOrKey { permission: Option<&'static str>, privilege: Option<&'static str> },
    /// A directory that provisions a workspace: `Authorization: Bearer <SCIM token>`.
    Scim,
}

impl Access {
    /// What a key must hold.
    pub const fn privilege(self) -> Option<&'static str> {
        match self {
            Self::Key { privilege }
            | Self::KeyWithTenant { privilege }
            | Self::KeyOrUser { privilege }
            | Self::UserOrKey { privilege, .. } => privilege,
            Self::Public | Self::Operator | Self::User { .. } | Self::Bearer { .. } | Self::Scim => None,
        }
    }

    /// What a signed-in user must hold, or be.
    pub const fn permission(self) -> Option<&'static str> {
        match self {
            Self::User { permission } | Self::Bearer { permission } | Self::UserOrKey { permission, .. } => permission,
            _ => None,
        }
    }

    /// The names of the security schemes, each of which alone is enough.
    pub(crate) const fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::Public => &[],
            Self::Operator => &["operatorKey"],
            Self::Key { .. } | Self::KeyWithTenant { .. } => &["apiKey"],
            Self::KeyOrUser { .. } | Self::UserOrKey { .. } => &["apiKey", "accessToken"],
            Self::User { .. } | Self::Bearer { .. } => &["accessToken"],
            Self::Scim => &["scimToken"],
        }
    }
}

/// As the route table and the API page say it: `KEY+T TENANT_WRITE`.
impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = |name: &str, asks: Option<&str>| match asks {
            Some(asks) => format!("{name} {asks}"),
            None => name.to_owned(),
        };
        f.write_str(&match *self {
            Self::Public => "PUB".to_owned(),
            Self::Operator => "OPERATOR".to_owned(),
            Self::Key { privilege } => named("KEY", privilege),
            Self::KeyWithTenant { privilege } => named("KEY+T", privilege),
            Self::KeyOrUser { privilege } => named("KEY or USER", privilege),
            Self::User { permission } => named("USER", permission),
            Self::Bearer { permission } => named("BEARER", permission),
            Self::Scim => "SCIM".to_owned(),
            Self::UserOrKey { permission, privilege } => {
                format!("{} or {}", named("USER", permission), named("KEY+T", privilege))
            }
        })
    }
}

/// Implemented by everything that may stand in a handler's signature.
pub trait Describe {
    fn describe(operation: &mut Operation);
}

/// Writes a type's schema; resolved when the whole document is made, so that types are shared in it.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

#[derive(Clone, Debug, Default)]
pub struct Operation {
    pub(crate) access: Access,
    pub(crate) headers: Vec<HeaderParameter>,
    pub(crate) path: Option<SchemaOf>,
    pub(crate) query: Vec<SchemaOf>,
    pub(crate) body: Option<BodyContent>,
    /// Without content where nothing is answered, with several where the caller chooses.
    pub(crate) success: Option<(StatusCode, Vec<BodyContent>)>,
    pub(crate) body_is_optional: bool,
    pub(crate) failures: BTreeMap<u16, String>,
}

#[derive(Clone, Debug)]
pub(crate) struct HeaderParameter {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    pub(crate) description: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyContent {
    pub(crate) media_type: &'static str,
    pub(crate) schema: Option<SchemaOf>,
}

impl Operation {
    /// Names the caller and, with it, the headers and the failures that every caller of this sort may meet.
    pub fn access(&mut self, access: Access) -> &mut Self {
        self.access = access;
        if access != Access::Public {
            self.failure(401, "The credential is missing or not valid");
        }
        match access {
            Access::KeyWithTenant { .. } => self.header("x-tenant-id", false, TENANT_HEADER),
            Access::User { .. } => self.header("x-app-id", true, APP_HEADER),
            Access::UserOrKey { .. } => {
                self.header("x-app-id", false, APP_HEADER).header("x-tenant-id", false, TENANT_HEADER)
            }
            _ => self,
        };
        if !matches!(access, Access::Public | Access::Operator) {
            self.failure(403, "The caller is authenticated but not allowed to do this");
        }
        self
    }

    pub fn header(&mut self, name: &'static str, required: bool, description: &'static str) -> &mut Self {
        if !self.headers.iter().any(|known| known.name == name) {
            self.headers.push(HeaderParameter { name, required, description });
            self.failure(400, INVALID);
        }
        self
    }

    /// The types of the path's parameters: one value, a tuple in the path's order, or a struct by name.
    pub fn path<T: JsonSchema>(&mut self) -> &mut Self {
        self.path = Some(T::json_schema);
        self.failure(404, "It does not exist, or it belongs to another app")
    }

    /// Query parameters: the members of `T`.
    pub fn query<T: JsonSchema>(&mut self) -> &mut Self {
        self.query.push(T::json_schema);
        self.failure(400, INVALID).failure(431, "The address and the headers are too long together")
    }

    /// A JSON body.
    pub fn body<T: JsonSchema>(&mut self) -> &mut Self {
        self.body_as::<T>("application/json")
    }

    /// The same by another name.
    pub fn body_as<T: JsonSchema>(&mut self, media_type: &'static str) -> &mut Self {
        self.body = Some(BodyContent { media_type, schema: Some(schema_of::<T>) });
        self.failure(400, INVALID).failure(413, "The body is too large").failure(415, "The body is not JSON")
    }

    /// A body as a form sends it: the members of `T`.
    pub fn form<T: JsonSchema>(&mut self) -> &mut Self {
        self.body = Some(BodyContent { media_type: "application/x-www-form-urlencoded", schema: Some(schema_of::<T>) });
        self.failure(400, "The form is malformed or invalid")
            .failure(413, "The body is too large")
            .failure(415, "The body is not a form")
    }

    pub fn body_may_be_left_out(&mut self) -> &mut Self {
        self.body_is_optional = true;
        self
    }

    /// A body that is taken as it comes.
    pub fn raw_body(&mut self, media_type: &'static str) -> &mut Self {
        self.body = Some(BodyContent { media_type, schema: None });
        self.failure(413, "The body is too large")
    }

    /// The answer when all went well.
    pub fn answer<T: JsonSchema>(&mut self, status: StatusCode) -> &mut Self {
        self.answer_as::<T>(status, "application/json")
    }

    /// The same by another name than `application/json`.
    pub fn answer_as<T: JsonSchema>(&mut self, status: StatusCode, media_type: &'static str) -> &mut Self {
        self.success = Some((status, vec![BodyContent { media_type, schema: Some(schema_of::<T>) }]));
        self
    }

    pub fn raw_answer(&mut self, status: StatusCode, media_type: &'static str) -> &mut Self {
        self.raw_answers(status, &[media_type])
    }

    /// One of several types, whichever was asked for.
    pub fn raw_answers(&mut self, status: StatusCode, media_types: &[&'static str]) -> &mut Self {
        let content = |media_type: &&'static str| BodyContent { media_type, schema: None };
        self.success = Some((status, media_types.iter().map(content).collect()));
        self
    }

    /// An answer of zero length.
    pub fn empty_answer(&mut self, status: StatusCode) -> &mut Self {
        self.success = Some((status, Vec::new()));
        self
    }

    /// A status that the operation may also answer. The first description of a status stays.
    pub fn failure(&mut self, status: u16, when: &str) -> &mut Self {
        self.failures.entry(status).or_insert_with(|| when.to_owned());
        self
    }
}

const INVALID: &str = "The request is malformed or invalid";
const TENANT_HEADER: &str =
    "The workspace to act in. Required, except with a workspace-scoped API token, which names its own";
const APP_HEADER: &str = "The app; must be the access token's own";

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl<S> Describe for axum::extract::State<S> {
    fn describe(_: &mut Operation) {}
}

/// The way out for answers that no type here expresses; says only that it is a 200.
impl Describe for axum::response::Response {
    fn describe(operation: &mut Operation) {
        operation.empty_answer(StatusCode::OK);
    }
}
