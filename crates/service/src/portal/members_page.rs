//! The members' page: who belongs to the workspace or is invited to it, and a form to invite somebody. Whoever is in a portal
//! invites people and adds nobody.

use std::collections::BTreeMap;

use identity::hosted::{self, Reply, Sent, flash::Flash};
use kernel::{AppId, Email, Page, Result, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Tx;
use tenancy::{
    Authority,
    members::{self, NewMember, TenantUser},
    roles::{self, Role},
};
use web::{
    Params, Path, Routes, State,
    pages::{Field, FieldKind, HostedPage, Select, TableRow},
};

use super::{Visitor, member_page, visit::Visit};
use crate::Core;

const PATH: &str = "/cloud-views/portal/{app_id}/members";
/// How many are shown at a time.
const MOST: u32 = 100;

pub(super) fn routes() -> Routes<Core> {
    Routes::pages("Hosted pages").get(PATH, show, "Show the workspace's members to whoever is in the portal").post(
        PATH,
        submit,
        "Invite somebody to the workspace",
    )
}

pub(super) fn path(app: AppId) -> String {
    PATH.replace("{app_id}", &app.to_string())
}

/// 403 for whoever may not see members; 401 for whoever a key sent.
pub(super) fn check_reader(visitor: &Visitor) -> Result<()> {
    visitor.person()?;
    visitor.require("USER_READ", "Your role does not allow you to see the members.")
}

/// The same for changes.
pub(super) fn check_writer(visitor: &Visitor) -> Result<()> {
    check_reader(visitor)?;
    visitor.require("USER_WRITE", "Your role does not allow you to change members.")
}

/// Everybody's role, by its key, and those that the visitor may give.
pub(super) struct Roles {
    all: BTreeMap<String, String>,
    given: Vec<Role>,
}

impl Roles {
    pub(super) fn read(tx: &mut Tx<'_>, visitor: &Visitor) -> Result<Self> {
        let roles = roles::list(tx, visitor.app.id, Page::ALL)?;
        let all = roles.iter().map(|role| (role.key.clone(), role.name.clone())).collect();
        let authority = Authority::of_user(visitor.person()?);
        Ok(Self { all, given: roles.into_iter().filter(|role| authority.may_give(role).is_ok()).collect() })
    }

    pub(super) fn name<'a>(&'a self, key: &'a str) -> &'a str {
        self.all.get(key).map_or(key, String::as_str)
    }

    fn can_be_given(&self, key: &str) -> bool {
        self.given.iter().any(|role| role.key == key)
    }

    /// What can be chosen; somebody's own role is among it.
    pub(super) fn select(&self, label: &str, own: Option<&str>) -> Select {
        let default = self.given.iter().find(|role| role.is_default).map(|role| role.key.as_str());
        let select = Select::new("role", label, own.or(default).unwrap_or_default());
        let kept = own.filter(|own| !self.can_be_given(own));
        let select = kept.into_iter().fold(select, |select, own| select.option(own, self.name(own)));
        self.given.iter().fold(select, |select, role| select.option(&role.key, &role.name))
    }
}

/// Whether somebody can come in.
pub(super) fn status(user: &TenantUser) -> &'static str {
    match (user.user_id, user.enabled) {
        (_, false) => "Disabled",
        (None, true) => "Invited",
        (Some(_), true) => "Active",
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
struct ListQuery {
    /// Leave out so many first.
    #[serde(default)]
    offset: Option<u32>,
}

struct Listing {
    users: Vec<TenantUser>,
    roles: Roles,
}

async fn show(
    request: hosted::Request,
    State(core): State<Core>,
    Path(app): Path<AppId>,
    Params(query): Params<ListQuery>,
) -> Result<Reply> {
    let offset = query.offset.unwrap_or_default();
    let opened = Visit::open(&core, &request, app, move |tx, visitor| {
        check_reader(visitor)?;
        // One more than is shown tells whether there are more.
        let page = Page { limit: Some(MOST + 1), offset: Some(offset) };
        let listed = members::list(tx, app, visitor.tenant, page)?;
        let users = members::http::shown(tx, app, visitor.tenant, true, listed)?;
        Ok(Listing { users, roles: Roles::read(tx, visitor)? })
    });
    let (visit, Listing { mut users, roles }) = opened.await?;
    let path = path(app);
    let left = visit.left_for(&path);
    let page = visit.with_news(visit.page("Members", &path).paragraph(&visit.workspace), &left);
    let has_more = users.len() > usize::try_from(MOST).unwrap_or(usize::MAX);
    users.truncate(usize::try_from(MOST).unwrap_or(usize::MAX));
    let page = table(&visit, page, &users, &roles);
    let page = match offset {
        0 => page,
        _ => page.link("", &visit.say("Previous page"), &format!("{path}?offset={}", offset.saturating_sub(MOST))),
    };
    let page = match has_more {
        true => page.link("", &visit.say("Next page"), &format!("{path}?offset={}", offset.saturating_add(MOST))),
        false => page,
    };
    let page = if visit.visitor.holds("USER_WRITE") { invitation(&visit, page, &roles, &left) } else { page };
    Ok(visit.show_once(visit.with_way_out(page)))
}

fn table(visit: &Visit, page: HostedPage, users: &[TenantUser], roles: &Roles) -> HostedPage {
    let heads = ["Email address", "Name", "Role", "Status"].map(|head| visit.say(head));
    let row = |user: &TenantUser| TableRow {
        name: user.email.clone(),
        href: Some(member_page::path(visit.visitor.app.id, user.id)),
        cells: vec![user.full_name.clone(), roles.name(&user.role).to_owned(), visit.say(status(user))],
    };
    page.table(&visit.say("Members"), &heads, &users.iter().map(row).collect::<Vec<_>>())
}

fn invitation(visit: &Visit, page: HostedPage, roles: &Roles, left: &Flash) -> HostedPage {
    let address = Field::new(FieldKind::Email, "email", &visit.say("Email address"))
        .value(left.typed_in("email").unwrap_or_default())
        .error(left.problem_of("email").map(|problem| visit.say(problem)).as_deref());
    let chosen = left.typed_in("role").filter(|key| roles.can_be_given(key));
    let form = visit
        .form(&path(visit.visitor.app.id))
        .field(address)
        .select(roles.select(&visit.say("Role"), chosen))
        .button(&visit.say("Send invitation"));
    page.heading(&visit.say("Invite somebody")).form(&form)
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct InvitationForm {
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    email: String,
    #[serde(default)]
    role: String,
}

async fn submit(
    request: hosted::Request,
    State(core): State<Core>,
    Path(app): Path<AppId>,
    Sent { form, once }: Sent<InvitationForm>,
) -> Result<Reply> {
    once.run(core.tenancy.clone(), async move {
        let (visit, ()) = Visit::open(&core, &request, app, |_, visitor| check_writer(visitor)).await?;
        visit.check_form(&core, &form.csrf)?;
        let typed = Flash::new().typed("email", &form.email).typed("role", &form.role);
        let Ok(username) = form.email.trim().parse::<Email>() else {
            let problem = "Enter a valid email address, such as ada@example.com.";
            return visit.lead(path(app), typed.problem("email", problem));
        };
        match invite(&core, &visit.visitor, username, form.role.parse().ok()).await {
            Ok(()) => visit.done(path(app), "The invitation has been sent."),
            Err(error) => visit.failed(path(app), typed, error),
        }
    })
    .await
}

async fn invite(core: &Core, visitor: &Visitor, username: Email, role: Option<Words>) -> Result<()> {
    let (user, tenancy, app) = (visitor.person()?.clone(), core.tenancy.clone(), visitor.app.clone());
    let authority = Authority::of_user(&user);
    let new =
        NewMember { username, role, first_name: None, last_name: None, mute_notifications: None, parameters: None };
    let tenant = visitor.tenant;
    let invited = core.db.by(&user).write(move |tx| members::create(tx, &tenancy, &app, &authority, tenant, &new));
    invited.await.map(|_| ())
}
