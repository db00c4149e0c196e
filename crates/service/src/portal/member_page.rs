//! The page of one member, or of somebody who is invited: what may be changed about them.

use identity::hosted::{self, Reply, Sent, flash::Flash};
use kernel::{AppId, Code, Error, MemberId, Result, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Tx;
use tenancy::{
    Authority,
    members::{self, MemberChanges, MemberRef, TenantUser, invitations},
};
use web::{Given, Path, Routes, State, pages::HostedPage};

use super::{
    Visitor,
    members_page::{self, Roles, check_reader, check_writer, status},
    visit::Visit,
};
use crate::Core;

const PATH: &str = "/cloud-views/portal/{app_id}/members/{user_id}";

pub(super) fn routes() -> Routes<Core> {
    Routes::pages("Hosted pages").get(PATH, show, "Show a member to whoever is in the portal").post(
        PATH,
        submit,
        "Change or remove a member",
    )
}

pub(super) fn path(app: AppId, member: MemberId) -> String {
    PATH.replace("{app_id}", &app.to_string()).replace("{user_id}", &member.to_string())
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
struct MemberPath {
    app_id: AppId,
    user_id: MemberId,
}

struct Shown {
    user: TenantUser,
    roles: Roles,
}

impl Shown {
    fn read(tx: &mut Tx<'_>, visitor: &Visitor, member: MemberId) -> Result<Self> {
        check_reader(visitor)?;
        let (app, tenant) = (visitor.app.id, visitor.tenant);
        let listed = members::get_listed(tx, app, tenant, MemberRef::Member(member))?;
        let user = members::http::shown(tx, app, tenant, true, vec![listed])?.pop();
        let user = user.ok_or_else(|| Error::internal("somebody who was found is not shown"))?;
        Ok(Self { user, roles: Roles::read(tx, visitor)? })
    }
}

async fn show(
    request: hosted::Request,
    State(core): State<Core>,
    Path(MemberPath { app_id: app, user_id: member }): Path<MemberPath>,
) -> Result<Reply> {
    let read = move |tx: &mut Tx<'_>, visitor: &Visitor| Shown::read(tx, visitor, member);
    let (visit, Shown { user, roles }) = Visit::open(&core, &request, app, read).await?;
    let left = visit.left_for(&path(app, member));
    let page = visit.with_news(visit.page("Member", ""), &left).highlight(&user.email);
    let page = if user.full_name.is_empty() { page } else { page.paragraph(&user.full_name) };
    let line = |label: &str, value: &str| format!("{}: {value}", visit.say(label));
    let page = page.paragraph(&line("Role", roles.name(&user.role)));
    let page = page.paragraph(&line("Status", &visit.say(status(&user))));
    let page = if visit.visitor.holds("USER_WRITE") { forms(&visit, page, &user, &roles) } else { page };
    Ok(visit.show_once(page.link("", &visit.say("Back to all members"), &members_page::path(app))))
}

fn forms(visit: &Visit, page: HostedPage, user: &TenantUser, roles: &Roles) -> HostedPage {
    let form = |action: &str| visit.form(&path(visit.visitor.app.id, user.id)).hidden("action", action);
    let button = |action: &str, label: &str| form(action).button(&visit.say(label)).quiet();
    let role = form("role").select(roles.select(&visit.say("New role"), Some(&user.role)));
    let page = page.form(&role.button(&visit.say("Change role")));
    if visit.visitor.is_member(user.id) {
        return page;
    }
    let page = match (user.user_id, user.enabled) {
        (_, false) => page.form(&button("enable", "Enable")),
        (None, true) => page.form(&button("resend", "Send the invitation again")),
        (Some(_), true) => page.form(&button("disable", "Disable")),
    };
    page.form(&match user.user_id {
        Some(_) => button("remove", "Remove from the workspace"),
        None => button("withdraw", "Withdraw invitation"),
    })
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Role,
    Enable,
    Disable,
    /// Mails an invitation once more.
    Resend,
    Remove,
    /// Takes an invitation back.
    Withdraw,
}

impl Action {
    fn done(self) -> &'static str {
        match self {
            Self::Role => "The role has been changed.",
            Self::Enable => "The member has been enabled.",
            Self::Disable => "The member has been disabled.",
            Self::Resend => "The invitation has been sent.",
            Self::Remove => "The member has been removed.",
            Self::Withdraw => "The invitation has been withdrawn.",
        }
    }

    /// Whether the member's page is gone with it.
    fn is_removal(self) -> bool {
        matches!(self, Self::Remove | Self::Withdraw)
    }
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct MemberForm {
    action: Action,
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    role: String,
}

async fn submit(
    request: hosted::Request,
    State(core): State<Core>,
    Path(MemberPath { app_id: app, user_id: member }): Path<MemberPath>,
    Sent { form, once }: Sent<MemberForm>,
) -> Result<Reply> {
    once.run(core.tenancy.clone(), async move {
        let (visit, ()) = Visit::open(&core, &request, app, |_, visitor| check_writer(visitor)).await?;
        visit.check_form(&core, &form.csrf)?;
        let (here, all) = (path(app, member), members_page::path(app));
        match act(&core, &visit.visitor, member, &form).await {
            Ok(()) if form.action.is_removal() => visit.done(all, form.action.done()),
            Ok(()) => visit.done(here, form.action.done()),
            // They have no page, or none any more.
            Err(error) if error.code() == Code::NotFound => visit.failed(all, Flash::new(), error),
            Err(error) => visit.failed(here, Flash::new(), error),
        }
    })
    .await
}

async fn act(core: &Core, visitor: &Visitor, member: MemberId, form: &MemberForm) -> Result<()> {
    let (user, tenancy, app, tenant) =
        (visitor.person()?.clone(), core.tenancy.clone(), visitor.app.clone(), visitor.tenant);
    if visitor.is_member(member) && (form.action.is_removal() || matches!(form.action, Action::Disable)) {
        let message = "You cannot disable or remove yourself. Ask another member to do it.";
        return Err(Error::new(Code::Forbidden, message));
    }
    let (authority, who) = (Authority::of_user(&user), MemberRef::Member(member));
    let changes = match form.action {
        Action::Role => {
            let role: Words = form.role.parse().map_err(|problem: String| Error::invalid("role", problem))?;
            Some(MemberChanges { role: Given(Some(role)), ..MemberChanges::default() })
        }
        Action::Enable => Some(MemberChanges { enabled: Given(Some(true)), ..MemberChanges::default() }),
        Action::Disable => Some(MemberChanges { enabled: Given(Some(false)), ..MemberChanges::default() }),
        Action::Resend | Action::Remove | Action::Withdraw => None,
    };
    let resends = matches!(form.action, Action::Resend);
    let acted = core.db.by(&user).write(move |tx| match &changes {
        Some(changes) => members::update(tx, &tenancy, app.id, &authority, tenant, who, changes).map(|_| ()),
        None if resends => invitations::mail_again(tx, &tenancy, &app, tenant, member),
        None => members::remove(tx, &tenancy, app.id, tenant, who),
    });
    acted.await
}
