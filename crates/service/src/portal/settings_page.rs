//! The workspace's own page: what it is called, its language and logo, and whether its members need a second factor. Whoever may
//! only read the workspace sees the same without a form.

use identity::hosted::{self, Reply, Sent, flash::Flash};
use kernel::{AppId, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Tx;
use tenancy::{
    Authority,
    workspaces::{self, Tenant, TenantChanges},
};
use web::{
    Given, Patch, Path, Routes, State,
    pages::{Field, FieldKind, HostedPage, Select},
};

use super::{Visitor, visit::Visit};
use crate::Core;

const PATH: &str = "/cloud-views/portal/{app_id}/settings";
const OPTIONAL: &str = "optional";
const REQUIRED: &str = "required";

pub(super) fn routes() -> Routes<Core> {
    Routes::pages("Hosted pages").get(PATH, show, "Show the workspace's settings to whoever is in the portal").post(
        PATH,
        submit,
        "Change the workspace's settings",
    )
}

pub(super) fn path(app: AppId) -> String {
    PATH.replace("{app_id}", &app.to_string())
}

/// 403 for whoever may not read the workspace; 401 for whoever a key sent.
fn check_reader(visitor: &Visitor) -> Result<()> {
    visitor.person()?;
    visitor.require("TENANT_READ", "Your role does not allow you to see the settings.")
}

fn check_writer(visitor: &Visitor) -> Result<()> {
    check_reader(visitor)?;
    visitor.require("TENANT_WRITE", "Your role does not allow you to change the settings.")
}

async fn show(request: hosted::Request, State(core): State<Core>, Path(app): Path<AppId>) -> Result<Reply> {
    let opened = Visit::open(&core, &request, app, move |tx, visitor| {
        check_reader(visitor)?;
        workspaces::get(tx, app, visitor.tenant)
    });
    let (visit, workspace) = opened.await?;
    let path = path(app);
    let left = visit.left_for(&path);
    let page = visit.with_news(visit.page("Settings", &path).paragraph(&workspace.name), &left);
    let page = match visit.visitor.holds("TENANT_WRITE") {
        true => with_form(&visit, page, &workspace, &left),
        false => without_form(&visit, page, &workspace),
    };
    Ok(visit.show_once(visit.with_way_out(page)))
}

fn with_form(visit: &Visit, page: HostedPage, workspace: &Tenant, left: &Flash) -> HostedPage {
    let field = |kind, name, label: &str, value: &str| {
        Field::new(kind, name, &visit.say(label)).value(left.typed_in(name).unwrap_or(value))
    };
    let language = field(FieldKind::Text, "locale", "Language", workspace.locale.code());
    let logo = field(FieldKind::Url, "logo", "Logo", workspace.logo.as_deref().unwrap_or_default());
    let now = if workspace.mfa { REQUIRED } else { OPTIONAL };
    let factor = Select::new("mfa", &visit.say("Two-factor authentication"), left.typed_in("mfa").unwrap_or(now))
        .option(OPTIONAL, &visit.say("Up to each member"))
        .option(REQUIRED, &visit.say("Required for all members"));
    let form = visit
        .form(&path(visit.visitor.app.id))
        .field(field(FieldKind::Organization, "name", "Workspace name", &workspace.name))
        .field(language.hint(&visit.say("A language code with two letters, such as en or de.")))
        .field(logo.hint(&visit.say("The web address of an image.")).optional())
        .select(factor)
        .button(&visit.say("Save"));
    page.form(&form)
}

fn without_form(visit: &Visit, page: HostedPage, workspace: &Tenant) -> HostedPage {
    let factor = if workspace.mfa { "Required for all members" } else { "Up to each member" };
    let told = [
        ("Language", workspace.locale.code().to_owned()),
        ("Logo", workspace.logo.clone().unwrap_or_else(|| visit.say("None"))),
        ("Two-factor authentication", visit.say(factor)),
    ];
    told.into_iter().fold(page, |page, (label, value)| page.paragraph(&format!("{}: {value}", visit.say(label))))
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SettingsForm {
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    locale: String,
    #[serde(default)]
    logo: String,
    #[serde(default)]
    mfa: String,
}

async fn submit(
    request: hosted::Request,
    State(core): State<Core>,
    Path(app): Path<AppId>,
    Sent { form, once }: Sent<SettingsForm>,
) -> Result<Reply> {
    once.run(core.tenancy.clone(), async move {
        let (visit, ()) = Visit::open(&core, &request, app, |_, visitor| check_writer(visitor)).await?;
        visit.check_form(&core, &form.csrf)?;
        match change(&core, &visit, &form).await {
            Ok(()) => visit.done(path(app), "The settings have been saved."),
            Err(error) => visit.failed(path(app), form.typed(), error),
        }
    })
    .await
}

impl SettingsForm {
    fn typed(&self) -> Flash {
        let typed = [("name", &self.name), ("locale", &self.locale), ("logo", &self.logo), ("mfa", &self.mfa)];
        typed.into_iter().fold(Flash::new(), |flash, (field, text)| flash.typed(field, text))
    }

    /// What the form says of the workspace, in the words of its fields where that cannot be.
    fn changes(&self, visit: &Visit) -> Result<TenantChanges> {
        let wrong = |field: &str, problem: &str| Error::invalid(visit.say(field), problem);
        let name = self.name.trim().parse().map_err(|problem: String| wrong("Workspace name", &problem))?;
        let locale = self.locale.trim().to_ascii_lowercase();
        let locale = locale.parse().map_err(|problem| wrong("Language", problem))?;
        let logo = match self.logo.trim() {
            "" => Patch::Null,
            address => Patch::Value(address.parse().map_err(|problem: String| wrong("Logo", &problem))?),
        };
        let mfa = match self.mfa.as_str() {
            OPTIONAL => false,
            REQUIRED => true,
            _ => return Err(wrong("Two-factor authentication", "must be one of the choices")),
        };
        let given = (Given(Some(name)), Given(Some(locale)), Given(Some(mfa)));
        Ok(TenantChanges { name: given.0, locale: given.1, mfa: given.2, logo, ..TenantChanges::default() })
    }
}

async fn change(core: &Core, visit: &Visit, form: &SettingsForm) -> Result<()> {
    let (user, changes) = (visit.visitor.person()?.clone(), form.changes(visit)?);
    let (app, tenant, authority) = (user.app(), user.tenant(), Authority::of_user(&user));
    let changed =
        core.db.by(&user).write(move |tx: &mut Tx<'_>| workspaces::update(tx, app, &authority, tenant, &changes));
    changed.await.map(|_| ())
}
