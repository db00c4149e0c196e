//! The OpenAPI 3.1 document of a set of routes. It follows from the registrations alone, in their order, so that two
//! builds give the same text and a checked-in copy can be compared.

use http::StatusCode;
use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{
    Access, Routes,
    components::{Components, merge},
    failure::{ErrorBody, FailureForm},
    operation::{BodyContent, HeaderParameter, SchemaOf},
    routes::Route,
    schemas, scim,
};

/// What the document says about the service as a whole.
pub struct Info {
    pub title: &'static str,
    pub version: &'static str,
    pub description: &'static str,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// The document of all routes that are not hidden.
    pub fn openapi(&self, info: &Info) -> Value {
        let mut document = Document::new();
        let error = document.answers.subschema_for::<ErrorBody<'_>>();
        document.error = error.to_value();
        let error = document.answers.subschema_for::<scim::ScimFailure<'_>>();
        document.scim_error = error.to_value();
        let mut paths = Map::new();
        let mut tags: Vec<&str> = Vec::new();
        for route in self.listed().filter(|route| !route.hidden) {
            if !tags.contains(&route.tag) {
                tags.push(route.tag);
            }
            let operation = document.operation(route);
            let methods = paths.entry(route.path).or_insert_with(|| json!({}));
            methods[route.method.as_str().to_ascii_lowercase()] = operation;
        }
        let components = merge(&mut paths, document.components());
        let mut document = json!({
            "openapi": "3.1.0",
            "info": { "title": info.title, "version": info.version, "description": info.description },
            "servers": [{ "url": "/" }],
            "tags": tags.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
            "paths": paths,
            "components": { "schemas": components, "securitySchemes": security_schemes() },
        });
        schemas::publish(&mut document);
        document
    }
}

fn security_schemes() -> Value {
    json!({
        "operatorKey": { "type": "http", "scheme": "bearer", "description": "The operator key of this installation." },
        "apiKey": {
            "type": "apiKey", "in": "header", "name": "x-api-key",
            "description": "An app API key, or an API token with the privileges the operation asks for.",
        },
        "accessToken": {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A signed-in user's access token.",
        },
        "scimToken": { "type": "http", "scheme": "bearer", "description": "A SCIM token of a workspace." },
    })
}

/// Two generators, because a type may be read and written differently: what is optional to send may always be answered.
struct Document {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
    error: Value,
    scim_error: Value,
}

impl Document {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            requests: settings().for_deserialize().into_generator(),
            answers: settings().for_serialize().into_generator(),
            error: Value::Null,
            scim_error: Value::Null,
        }
    }

    fn components(mut self) -> Components {
        Components { requests: self.requests.take_definitions(true), answers: self.answers.take_definitions(true) }
    }

    fn operation(&mut self, route: &Route) -> Value {
        let operation = &route.operation;
        let mut value = json!({
            "tags": [route.tag],
            "summary": route.summary,
            "operationId": operation_id(route),
        });
        if let Some(description) = description(route) {
            value["description"] = description.into();
        }
        let parameters = self.parameters(route);
        if !parameters.is_empty() {
            value["parameters"] = parameters.into();
        }
        if let Some(body) = &operation.body {
            value["requestBody"] = json!({ "required": !operation.body_is_optional, "content": { body.media_type: content(body, &mut self.requests) } });
        }
        value["responses"] = self.responses(route);
        value["security"] = operation.access.schemes().iter().map(|scheme| json!({ *scheme: [] })).collect();
        value
    }

    fn parameters(&mut self, route: &Route) -> Vec<Value> {
        let mut parameters = path_parameters(route.path, route.operation.path, &mut self.requests);
        for query in &route.operation.query {
            parameters.extend(query_parameters(&query(&mut self.requests)));
        }
        parameters.extend(route.operation.headers.iter().map(header_parameter));
        parameters
    }

    fn responses(&mut self, route: &Route) -> Value {
        let mut responses = Map::new();
        let mut success = json!({ "description": phrase(route.success()) });
        for answer in route.operation.success.iter().flat_map(|(_, answers)| answers) {
            success["content"][answer.media_type] = content(answer, &mut self.answers);
        }
        responses.insert(route.success().as_str().to_owned(), success);
        let failure = |when: &str| match route.failures {
            FailureForm::Page => json!({ "description": when, "content": { "text/html": {} } }),
            FailureForm::Json => {
                json!({ "description": when, "content": { "application/json": { "schema": self.error } } })
            }
            FailureForm::Scim => {
                json!({ "description": when, "content": { scim::MEDIA_TYPE: { "schema": self.scim_error } } })
            }
        };
        for (status, when) in &route.operation.failures {
            responses.entry(status.to_string()).or_insert_with(|| match BARE.contains(status) {
                true => json!({ "description": when }),
                false => failure(when),
            });
        }
        responses.insert("default".to_owned(), failure("Any other failure"));
        responses.into()
    }
}

/// Answers without a body: nothing has changed, or the request could not be read as far as its operation.
const BARE: [u16; 2] = [304, 431];

fn description(route: &Route) -> Option<String> {
    let access = route.operation.access;
    let privilege = access.privilege().map(|key| match access {
        Access::UserOrKey { .. } => format!("A key requires the privilege `{key}`."),
        _ => format!("Requires the privilege `{key}`."),
    });
    let permission = access.permission().map(|asked| format!("A signed-in user requires `{asked}`."));
    let workspace = matches!(access, Access::User { .. } | Access::UserOrKey { .. })
        .then(|| "The workspace is the access token's.".to_owned());
    let parts: Vec<String> =
        route.description.map(str::to_owned).into_iter().chain(workspace).chain(permission).chain(privilege).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// `GET /admin/apps/{app_id}/keys` becomes `getAdminAppsByAppIdKeys`.
fn operation_id(route: &Route) -> String {
    let mut id = route.method.as_str().to_ascii_lowercase();
    for segment in route.path.split('/') {
        if segment.starts_with('{') {
            id.push_str("By");
        }
        for word in segment.split(|c: char| !c.is_ascii_alphanumeric()) {
            let mut letters = word.chars();
            id.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            id.push_str(letters.as_str());
        }
    }
    id
}

fn content(content: &BodyContent, generator: &mut SchemaGenerator) -> Value {
    let schema = match content.schema {
        Some(schema) => schema(generator).to_value(),
        None => json!({ "type": "string" }),
    };
    json!({ "schema": schema })
}

/// The names stand in the path, the types in the handler: a tuple by order, a struct by name, else one value.
fn path_parameters(path: &str, types: Option<SchemaOf>, generator: &mut SchemaGenerator) -> Vec<Value> {
    let schema = types.map_or_else(Schema::default, |types| types(generator)).to_value();
    let names = path.split(['{', '}']).skip(1).step_by(2).map(|name| name.trim_start_matches('*'));
    names
        .enumerate()
        .map(|(place, name)| {
            let own = schema["prefixItems"].get(place).or_else(|| schema["properties"].get(name));
            let mut own = own.cloned().unwrap_or_else(|| schema.clone());
            // A path segment is never empty, and an untyped one is a text.
            if own.get("type").is_none() && own.get("$ref").is_none() {
                own = json!({ "type": "string" });
            }
            if own["type"] == "string" && own.get("pattern").is_none() && own.get("enum").is_none() {
                own["minLength"] = 1.into();
            }
            json!({ "name": name, "in": "path", "required": true, "schema": own })
        })
        .collect()
}

fn query_parameters(schema: &Schema) -> Vec<Value> {
    let schema = schema.as_value();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let members = schema["properties"].as_object().into_iter().flatten();
    members
        .map(|(name, member)| {
            let mut member = member.clone();
            without_null(&mut member);
            let description = member.as_object_mut().and_then(|member| member.remove("description"));
            let mut parameter =
                json!({ "name": name, "in": "query", "required": required.contains(&name.as_str()), "schema": member });
            if let Some(description) = description {
                parameter["description"] = description;
            }
            parameter
        })
        .collect()
}

/// A query string cannot say null: an optional parameter is left out instead.
fn without_null(member: &mut Value) {
    let Some(member) = member.as_object_mut() else { return };
    if let Some(Value::Array(types)) = member.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            member.insert("type".to_owned(), only);
        }
    }
    if member.get("default").is_some_and(Value::is_null) {
        member.remove("default");
    }
    if let Some(Value::Array(choices)) = member.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
    }
}

fn header_parameter(header: &HeaderParameter) -> Value {
    json!({
        "name": header.name, "in": "header", "required": header.required,
        "description": header.description, "schema": { "type": "string" },
    })
}

fn phrase(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Done")
}
