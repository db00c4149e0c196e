//! All routes of the service, and the documents that are made from them.

use serde_json::Value;
use web::{Info, RouteEntry, Routes};

use crate::{Core, VERSION, archive, facts, operations, portal, workflows};

/// Every route there can be. The router leaves out those that are switched off.
fn all(test_clock: bool, metrics_public: bool) -> Routes<Core> {
    let tenancy = tenancy::app_lifecycle::http::routes()
        .merge(tenancy::keys::http::routes())
        .merge(tenancy::roles::http::routes())
        .merge(tenancy::federation::http::routes())
        .merge(tenancy::workspaces::http::routes())
        .merge(tenancy::members::http::routes())
        .merge(tenancy::members::invitations::http::routes())
        .merge(tenancy::api_tokens::http::routes())
        .merge(tenancy::credentials::http::routes())
        .merge(tenancy::scim_tokens::http::routes())
        .merge(tenancy::mails::http::routes())
        .merge(tenancy::branding::http::routes());
    let routes = operations::diagnostics::routes()
        .merge(operations::health::routes(metrics_public))
        .merge(tenancy.within(|core: &Core| core.tenancy.clone()))
        .merge(flags::routes().within(|core: &Core| core.flags.clone()))
        .merge(billing::routes().within(|core: &Core| core.billing.clone()))
        .merge(workflows::routes())
        .merge(portal::routes())
        .merge(web::pages::routes())
        .merge(identity::routes().within(|core: &Core| core.identity.clone()))
        .merge(signals::routes().within(|core: &Core| core.signals.clone()))
        .merge(eventlog::routes().within(|core: &Core| core.event_log.clone()))
        .merge(import::routes().within(|core: &Core| core.imports.clone()))
        .merge(files::routes().within(|core: &Core| core.files.clone()))
        .merge(scim::routes().within(|core: &Core| core.scim.clone()))
        .merge(operations::signing_keys::routes())
        .merge(operations::operator_key::routes())
        .merge(operations::backup::routes())
        .merge(archive::routes())
        .merge(operations::doctor::routes());
    if test_clock { routes.merge(operations::test_clock::routes()) } else { routes }
}

pub(crate) fn router(core: &Core, metrics_public: bool) -> axum::Router {
    let test_clock = core.test_clock.is_some();
    let docs = web::docs_routes(move || document(&all(test_clock, metrics_public)));
    all(test_clock, metrics_public).merge(docs).into_router(core.clone())
}

/// What is generated from the routes and checked in under `docs/`.
pub struct Documents {
    pub openapi: Value,
    pub routes: String,
    pub errors: String,
    pub facts: String,
}

pub fn documents() -> Documents {
    Documents {
        openapi: document(&all(true, false)),
        routes: web::routes_markdown(&route_table()),
        errors: web::errors_markdown(),
        facts: facts::page(),
    }
}

/// Every route with its caller, for the authorization test.
pub fn route_table() -> Vec<RouteEntry> {
    let docs = web::docs_routes(|| document(&all(true, false)));
    all(true, false).merge(docs).table()
}

/// What is called, and what calls others.
fn document(routes: &Routes<Core>) -> Value {
    let mut document = routes.openapi(&info());
    document["webhooks"] = signals::events::openapi();
    document
}

fn info() -> Info {
    Info {
        title: "Tenantry",
        version: VERSION,
        description: "Login, workspaces, billing, flags and events for a B2B SaaS, in one program. Every operation is \
                      also reachable under /v1.",
    }
}
