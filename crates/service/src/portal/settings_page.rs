//! The workspace's own page: what it is called, its language and logo, and whether its members need a second factor. Whoever may
//! only read the workspace sees the same without a form.

use identity::hosted::{self, Reply, Sent, flash::Flash};
use kernel::{AppId, Code, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Tx;
use tenancy::{
    Authority,
    callers::SignedIn,
    logins,
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

fn rule(mfa: bool) -> &'static str {
    if mfa { REQUIRED } else { OPTIONAL }
}

fn with_form(visit: &Visit, page: HostedPage, workspace: &Tenant, left: &Flash) -> HostedPage {
    let field = |kind, name, label: &str, value: &str| {
        Field::new(kind, name, &visit.say(label)).value(left.typed_in(name).unwrap_or(value))
    };
    let (locale, logo) = (workspace.locale.code(), workspace.logo.as_deref().unwrap_or_default());
    let factor = rule(workspace.mfa);
    let factors = Select::new("mfa", &visit.say("Two-step verification"), left.typed_in("mfa").unwrap_or(factor))
        .option(OPTIONAL, &visit.say("Up to each member"))
        .option(REQUIRED, &visit.say("Required for all members"));
    let language = field(FieldKind::Text, "locale", "Language", locale)
        .hint(&visit.say("A language code with two letters, such as en or de."));
    let image = field(FieldKind::Url, "logo", "Logo", logo).hint(&visit.say("The web address of an image.")).optional();
    let form = visit
        .form(&path(visit.visitor.app.id))
        .hidden("shown_name", &workspace.name)
        .hidden("shown_locale", locale)
        .hidden("shown_logo", logo)
        .hidden("shown_mfa", factor)
        .field(field(FieldKind::Organization, "name", "Workspace name", &workspace.name))
        .field(language)
        .field(image)
        .select(factors)
        .button(&visit.say("Save"));
    page.form(&form)
}

fn without_form(visit: &Visit, page: HostedPage, workspace: &Tenant) -> HostedPage {
    let factors = if workspace.mfa { "Required for all members" } else { "Up to each member" };
    let told = [
        ("Language", workspace.locale.code().to_owned()),
        ("Logo", workspace.logo.clone().unwrap_or_else(|| visit.say("None"))),
        ("Two-step verification", visit.say(factors)),
    ];
    told.into_iter().fold(page, |page, (label, value)| page.paragraph(&format!("{}: {value}", visit.say(label))))
}

/// With what the page showed: a field that nobody touched changes nothing, whoever has changed the setting meanwhile.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SettingsForm {
    csrf: String,
    name: String,
    shown_name: String,
    locale: String,
    shown_locale: String,
    logo: String,
    shown_logo: String,
    mfa: String,
    shown_mfa: String,
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

fn touched<'a>(typed: &'a str, shown: &str) -> Option<&'a str> {
    (typed != shown).then_some(typed.trim())
}

impl SettingsForm {
    fn name(&self) -> Option<&str> {
        touched(&self.name, &self.shown_name)
    }

    fn locale(&self) -> Option<&str> {
        touched(&self.locale, &self.shown_locale)
    }

    fn logo(&self) -> Option<&str> {
        touched(&self.logo, &self.shown_logo)
    }

    fn mfa(&self) -> Option<&str> {
        touched(&self.mfa, &self.shown_mfa)
    }

    fn typed(&self) -> Flash {
        let typed = [("name", self.name()), ("locale", self.locale()), ("logo", self.logo()), ("mfa", self.mfa())];
        let typed = typed.into_iter().filter_map(|(field, text)| Some((field, text?)));
        typed.fold(Flash::new(), |flash, (field, text)| flash.typed(field, text))
    }

    /// What the form changes, in the words of its fields where that cannot be.
    fn changes(&self, visit: &Visit) -> Result<TenantChanges> {
        let wrong = |field: &str, problem: &str| Error::invalid(visit.say(field), problem);
        let name = self.name().map(|name| name.parse().map_err(|problem: String| wrong("Workspace name", &problem)));
        let locale = self.locale().map(|code| code.to_ascii_lowercase().parse());
        let locale = locale.map(|parsed| parsed.map_err(|problem| wrong("Language", problem)));
        let logo = match self.logo() {
            None => Patch::Missing,
            Some("") => Patch::Null,
            Some(address) => Patch::Value(address.parse().map_err(|problem: String| wrong("Logo", &problem))?),
        };
        let mfa = self.mfa().map(|chosen| match chosen {
            OPTIONAL => Ok(false),
            REQUIRED => Ok(true),
            _ => Err(wrong("Two-step verification", "must be one of the choices")),
        });
        Ok(TenantChanges {
            name: Given(name.transpose()?),
            locale: Given(locale.transpose()?),
            logo,
            mfa: Given(mfa.transpose()?),
            ..TenantChanges::default()
        })
    }
}

async fn change(core: &Core, visit: &Visit, form: &SettingsForm) -> Result<()> {
    let (user, changes) = (visit.visitor.person()?.clone(), form.changes(visit)?);
    let changed = core.db.by(&user.clone()).write(move |tx| {
        if changes.mfa.value().is_some() {
            check_two_factors(tx, &user)?;
        }
        workspaces::update(tx, user.app(), &Authority::of_user(&user), user.tenant(), &changes)
    });
    changed.await.map(|_| ())
}

/// Who decides about everybody's second factor has shown one: whoever came in without must not do away with the rule, and nobody
/// locks themselves out by making it.
fn check_two_factors(tx: &mut Tx<'_>, user: &SignedIn) -> Result<()> {
    let login = user.claims.sid.parse().map_err(|_| logins::ended())?;
    if logins::live(tx, user.app(), login)?.mfa {
        return Ok(());
    }
    let message = "Sign in with two-step verification yourself before you change it for the workspace.";
    Err(Error::new(Code::Forbidden, message))
}
