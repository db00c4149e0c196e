//! What is known about whoever asks: sent with the request, and, given a token, what the service itself knows, which
//! wins over what was sent.

use std::borrow::Cow;

use kernel::{Code, Error, Result};

use super::json::{Json, Members, Number};

/// The attributes that rules may look at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context<'a> {
    pub user: Members<'a>,
    pub tenant: Members<'a>,
    pub device: Members<'a>,
    pub custom: Members<'a>,
}

/// A request's body: the context itself, or `{ context, accessToken }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentContext<'a> {
    pub context: Context<'a>,
    pub access_token: Option<Cow<'a, str>>,
}

impl<'a> SentContext<'a> {
    /// Reads a body. Nothing at all is an empty context.
    pub fn read(body: &'a [u8]) -> Result<Self> {
        let mut members = object(body)?;
        let mut access_token = token(members.take("accessToken"), "accessToken")?;
        let context = match members.take("context") {
            None | Some(Json::Null) => Context::from_members(members)?,
            Some(Json::Object(mut inner)) => {
                let within = token(inner.take("accessToken"), "context.accessToken")?;
                access_token = access_token.or(within);
                Context::from_members(inner)?
            }
            Some(_) => return Err(Error::invalid("context", "must be an object")),
        };
        Ok(Self { context, access_token })
    }

    /// Reads the body of an OpenFeature request: `targetingKey` is `user.id`, dotted and nested names are the usual
    /// attributes, and everything else is one of `custom`.
    pub fn read_open_feature(body: &'a [u8]) -> Result<Self> {
        let mut body = object(body)?;
        let mut sent = match body.take("context") {
            None | Some(Json::Null) => Members::default(),
            Some(Json::Object(members)) => members,
            Some(_) => return Err(Error::invalid("context", "must be an object")),
        };
        let access_token = token(sent.take("accessToken"), "context.accessToken")?;
        let targeting_key = sent.take("targetingKey");
        let mut parts: [Vec<(Cow<'a, str>, Json<'a>)>; 4] = Default::default();
        for (name, value) in sent.into_vec() {
            let (root, rest) = name.split_once('.').unwrap_or((&name, ""));
            match (Root::named(root), value) {
                (Some(root), Json::Object(members)) if rest.is_empty() => {
                    parts[root as usize].extend(members.into_vec());
                }
                (Some(root), value) if !rest.is_empty() => {
                    parts[root as usize].push((Cow::Owned(rest.to_owned()), value));
                }
                (_, value) => parts[Root::Custom as usize].push((name, value)),
            }
        }
        if let Some(key @ (Json::Text(_) | Json::Number(_))) = targeting_key {
            parts[Root::User as usize].push((Cow::Borrowed("id"), key));
        }
        let [user, tenant, device, custom] = parts.map(Members::new);
        Ok(Self { context: Context { user, tenant, device, custom }, access_token })
    }
}

fn object(body: &[u8]) -> Result<Members<'_>> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Members::default());
    }
    // Checking the encoding once costs less than checking each text.
    let text = str::from_utf8(body).map_err(|_| Error::new(Code::MalformedJson, "The body is not valid UTF-8."))?;
    match serde_json::from_str(text) {
        Ok(Json::Object(members)) => Ok(members),
        Ok(_) => Err(Error::invalid("body", "must be an object")),
        Err(error) => Err(Error::new(Code::MalformedJson, format!("The body is not valid JSON: {error}."))),
    }
}

fn token<'a>(value: Option<Json<'a>>, field: &str) -> Result<Option<Cow<'a, str>>> {
    match value {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Text(token)) => Ok(Some(token)),
        Some(_) => Err(Error::invalid(field, "must be a string")),
    }
}

impl<'a> Context<'a> {
    fn from_members(mut members: Members<'a>) -> Result<Self> {
        let mut part = |name: &str| match members.take(name) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::Object(part)) => Ok(Some(part)),
            Some(_) => Err(Error::invalid(name, "must be an object")),
        };
        let (user, tenant, org) = (part("user")?, part("tenant")?, part("org")?);
        let (device, custom) = (part("device")?, part("custom")?);
        Ok(Self {
            user: user.unwrap_or_default(),
            tenant: tenant.or(org).unwrap_or_default(),
            device: device.unwrap_or_default(),
            custom: custom.unwrap_or_default(),
        })
    }

    pub(super) fn part(&self, root: Root) -> &Members<'a> {
        match root {
            Root::User => &self.user,
            Root::Tenant => &self.tenant,
            Root::Device => &self.device,
            Root::Custom => &self.custom,
        }
    }

    /// What rollouts are bucketed by: the user's id, else the workspace's.
    pub fn identity(&self) -> Option<Cow<'_, str>> {
        identity(&self.user).or_else(|| identity(&self.tenant))
    }

    /// Puts what the service knows in the place of whatever was sent under those names.
    pub fn overrule(&mut self, live: Live) {
        self.user = overruled(std::mem::take(&mut self.user), live.user);
        self.tenant = overruled(std::mem::take(&mut self.tenant), live.tenant);
    }
}

/// Numbers count as their digits: `{ id: 7 }` and `{ id: "7" }` are one user.
fn identity<'m>(members: &'m Members<'_>) -> Option<Cow<'m, str>> {
    match members.get("id")? {
        Json::Text(id) if !id.is_empty() => Some(Cow::Borrowed(id)),
        Json::Number(Number::Int(id)) => Some(Cow::Owned(id.to_string())),
        Json::Number(Number::Large(id)) => Some(Cow::Owned(id.to_string())),
        _ => None,
    }
}

/// What the service itself knows about a token's user and workspace. A name without a value is known to have none, so
/// that nobody can claim one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    pub user: Vec<(&'static str, Option<Json<'static>>)>,
    pub tenant: Vec<(&'static str, Option<Json<'static>>)>,
}

fn overruled<'a>(sent: Members<'a>, live: Vec<(&'static str, Option<Json<'static>>)>) -> Members<'a> {
    let known = |name: &str| {
        let head = name.split_once('.').map_or(name, |(head, _)| head);
        live.iter().any(|(known, _)| *known == head)
    };
    let mut members = sent.into_vec();
    members.retain(|(name, _)| !known(name));
    members.extend(live.into_iter().filter_map(|(name, value)| Some((Cow::Borrowed(name), value?))));
    Members::new(members)
}

/// Where an attribute's path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    User,
    Tenant,
    Device,
    Custom,
}

impl Root {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "user" => Some(Self::User),
            "tenant" | "org" => Some(Self::Tenant),
            "device" => Some(Self::Device),
            "custom" => Some(Self::Custom),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user_id(body: &str) -> Option<String> {
        SentContext::read(body.as_bytes()).unwrap().context.identity().map(Cow::into_owned)
    }

    #[test]
    fn the_body_is_the_context_or_holds_it() {
        assert_eq!(user_id(r#"{"user":{"id":"u"}}"#).as_deref(), Some("u"));
        assert_eq!(user_id(r#"{"context":{"user":{"id":"u"}},"user":{"id":"x"}}"#).as_deref(), Some("u"));
        assert_eq!(user_id(r#"{"org":{"id":"t"}}"#).as_deref(), Some("t"));
        assert_eq!(user_id(r#"{"user":{"id":""},"tenant":{"id":"t"},"org":{"id":"o"}}"#).as_deref(), Some("t"));
        assert_eq!(user_id(r#"{"user":{"id":7}}"#).as_deref(), Some("7"));
        assert_eq!(user_id(""), None);
        let sent = SentContext::read(br#"{"context":{"accessToken":"b"},"accessToken":"a"}"#).unwrap();
        assert_eq!(sent.access_token.as_deref(), Some("a"));
        for (body, problem) in [
            ("[]", "body must be an object"),
            (r#"{"user":3}"#, "user must be an object"),
            (r#"{"context":3}"#, "context must be an object"),
            (r#"{"accessToken":3}"#, "accessToken must be a string"),
        ] {
            assert_eq!(SentContext::read(body.as_bytes()).unwrap_err().public(), problem);
        }
        assert_eq!(SentContext::read(b"{").unwrap_err().code(), Code::MalformedJson);
    }

    #[test]
    fn open_feature_names_become_attributes() {
        let body = br#"{"context":{"targetingKey":"u","user.role":"ADMIN","tenant":{"plan":"pro"},"org.name":"N",
                        "country":"CH","custom":{"a":1},"custom.b.c":2,"user":"text"}}"#;
        let context = SentContext::read_open_feature(body).unwrap().context;
        let seen = |part: &Members<'_>, path: &str| serde_json::to_string(&part.find(path)).unwrap();
        assert_eq!(context.identity().as_deref(), Some("u"));
        assert_eq!(seen(&context.user, "role"), "\"ADMIN\"");
        assert_eq!(seen(&context.tenant, "plan"), "\"pro\"");
        assert_eq!(seen(&context.tenant, "name"), "\"N\"");
        assert_eq!(seen(&context.custom, "country"), "\"CH\"");
        assert_eq!(seen(&context.custom, "a"), "1");
        assert_eq!(seen(&context.custom, "b.c"), "2");
        assert_eq!(seen(&context.custom, "user"), "\"text\"");
    }

    #[test]
    fn what_the_service_knows_overrules_what_was_sent() {
        let body = br#"{"tenant":{"plan":"pro","metadata.tier":"gold","key":"k"}}"#;
        let mut context = SentContext::read(body).unwrap().context;
        let metadata = Json::owned(&serde_json::json!({ "seats": 3 }));
        context.overrule(Live { user: Vec::new(), tenant: vec![("plan", None), ("metadata", Some(metadata))] });
        assert_eq!(context.tenant.find("plan"), None);
        assert_eq!(context.tenant.find("metadata.tier"), None);
        assert!(context.tenant.find("metadata.seats").is_some());
        assert_eq!(context.tenant.find("key"), Some(&Json::text("k")));
    }
}
