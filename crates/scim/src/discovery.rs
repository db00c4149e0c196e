//! What the service says about itself (RFC 7644 §4), and what of the standard is not offered.

use kernel::{Code, Error, Result};
use serde_json::{Value, json};
use tenancy::callers::ScimCaller;
use web::{Path, Routes, State};

use crate::{
    Scim,
    directory::base,
    http::{LARGEST, NoContent, ScimDocument},
    listing::told,
    schema::{GROUP, Schema, USER},
};

pub(crate) fn routes() -> Routes<Scim> {
    Routes::scim("SCIM")
        .get("/scim/v2/ServiceProviderConfig", config, "What of SCIM is offered")
        .get("/scim/v2/ResourceTypes", resource_types, "List the kinds of resources")
        .get("/scim/v2/ResourceTypes/{name}", resource_type, "Show a kind of resource")
        .get("/scim/v2/Schemas", schemas, "List the schemas of resources")
        .get("/scim/v2/Schemas/{urn}", schema, "Show a schema")
        .get("/scim/v2/Me", not_offered, "Not offered: a SCIM token is nobody's own")
        .answers(501, "Always")
        .post("/scim/v2/Me", not_offered, "Not offered: a SCIM token is nobody's own")
        .answers(501, "Always")
        .put("/scim/v2/Me", not_offered, "Not offered: a SCIM token is nobody's own")
        .answers(501, "Always")
        .patch("/scim/v2/Me", not_offered, "Not offered: a SCIM token is nobody's own")
        .answers(501, "Always")
        .delete("/scim/v2/Me", not_offered, "Not offered: a SCIM token is nobody's own")
        .answers(501, "Always")
        .post("/scim/v2/Bulk", not_offered, "Not offered")
        .answers(501, "Always")
}

/// The schemas with their names in paths.
const KINDS: [(&Schema, &str); 2] = [(&USER, "Users"), (&GROUP, "Groups")];

async fn config(_: ScimCaller, State(scim): State<Scim>) -> Result<ScimDocument> {
    let base = base(&scim.tenancy);
    Ok(ScimDocument(json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],
        "patch": { "supported": true },
        "bulk": { "supported": false, "maxOperations": 0, "maxPayloadSize": LARGEST },
        "filter": { "supported": true, "maxResults": 200 },
        "changePassword": { "supported": false },
        "sort": { "supported": true },
        "etag": { "supported": true },
        "authenticationSchemes": [{
            "type": "oauthbearertoken",
            "name": "SCIM token",
            "description": "A SCIM token of the workspace as Authorization: Bearer.",
            "primary": true,
        }],
        "meta": { "resourceType": "ServiceProviderConfig", "location": format!("{base}/ServiceProviderConfig") },
    })))
}

fn kind(base: &str, (schema, path): (&Schema, &str)) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],
        "id": schema.name,
        "name": schema.name,
        "description": schema.description,
        "endpoint": format!("/{path}"),
        "schema": schema.urn,
        "meta": { "resourceType": "ResourceType", "location": format!("{base}/ResourceTypes/{}", schema.name) },
    })
}

fn all(documents: &[Value]) -> ScimDocument {
    ScimDocument(told(i64::try_from(documents.len()).unwrap_or_default(), 1, documents))
}

async fn resource_types(_: ScimCaller, State(scim): State<Scim>) -> Result<ScimDocument> {
    let base = base(&scim.tenancy);
    Ok(all(&KINDS.map(|one| kind(&base, one))))
}

async fn resource_type(_: ScimCaller, State(scim): State<Scim>, Path(name): Path<String>) -> Result<ScimDocument> {
    let found = KINDS.into_iter().find(|(schema, _)| schema.name == name);
    let found = found.ok_or_else(|| Error::not_found("resource type"))?;
    Ok(ScimDocument(kind(&base(&scim.tenancy), found)))
}

async fn schemas(_: ScimCaller, State(scim): State<Scim>) -> Result<ScimDocument> {
    let base = base(&scim.tenancy);
    Ok(all(&KINDS.map(|(schema, _)| schema.told(&base))))
}

async fn schema(_: ScimCaller, State(scim): State<Scim>, Path(urn): Path<String>) -> Result<ScimDocument> {
    let found = KINDS.into_iter().find(|(schema, _)| schema.is_called(&urn));
    let (schema, _) = found.ok_or_else(|| Error::not_found("schema"))?;
    Ok(ScimDocument(schema.told(&base(&scim.tenancy))))
}

async fn not_offered(_: ScimCaller) -> Result<NoContent> {
    Err(Error::new(Code::NotOffered, "This part of SCIM is not offered; see /scim/v2/ServiceProviderConfig."))
}
