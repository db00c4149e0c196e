//! One's own page, which everybody in a portal has: names, and where one is signed in.

use identity::{
    hosted::{self, Reply, Sent, flash::Flash},
    me::{self, profile::Profile, sessions::OwnSession},
};
use kernel::{AppId, Error, OptionalName, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Tx;
use tenancy::logins::LoginId;
use web::{
    Path, Routes, State,
    pages::{Field, FieldKind, HostedPage},
};

use super::{Visitor, visit::Visit};
use crate::Core;

const PATH: &str = "/cloud-views/portal/{app_id}/profile";

pub(super) fn routes() -> Routes<Core> {
    Routes::pages("Hosted pages").get(PATH, show, "Show whoever is in the portal their own profile").post(
        PATH,
        submit,
        "Change one's own names, or end one of one's sessions",
    )
}

pub(super) fn path(app: AppId) -> String {
    PATH.replace("{app_id}", &app.to_string())
}

struct Own {
    profile: Profile,
    sessions: Vec<OwnSession>,
}

impl Own {
    fn read(tx: &mut Tx<'_>, visitor: &Visitor) -> Result<Self> {
        let user = visitor.person()?;
        Ok(Self { profile: Profile::read(tx, user)?, sessions: me::sessions::all(tx, user)? })
    }
}

async fn show(request: hosted::Request, State(core): State<Core>, Path(app): Path<AppId>) -> Result<Reply> {
    let (visit, Own { profile, sessions }) = Visit::open(&core, &request, app, Own::read).await?;
    let path = path(app);
    let left = visit.left_for(&path);
    let page = visit.with_news(visit.page("Your profile", &path).highlight(&profile.email), &left);
    let field = |kind, name, label: &str, value: &str| {
        let value = left.typed_in(name).unwrap_or(value);
        Field::new(kind, name, &visit.say(label)).value(value).optional()
    };
    let names = visit
        .form(&path)
        .hidden("action", "rename")
        .field(field(FieldKind::GivenName, "first_name", "First name", &profile.first_name))
        .field(field(FieldKind::FamilyName, "last_name", "Last name", &profile.last_name))
        .button(&visit.say("Save"));
    let page = with_sessions(&visit, page.form(&names), &sessions);
    Ok(visit.show_once(visit.with_way_out(page)))
}

fn with_sessions(visit: &Visit, page: HostedPage, sessions: &[OwnSession]) -> HostedPage {
    let page = page.heading(&visit.say("Where you are signed in"));
    let text = visit.say("Since {date}");
    sessions.iter().fold(page, |page, session| {
        let page = page.paragraph(&text.replace("{date}", &minute(session.signed_in_at)));
        if session.current {
            return page.aside(&visit.say("This is your current session."));
        }
        let form = visit.form(&path(visit.visitor.app.id)).hidden("action", "end");
        page.form(&form.hidden("session", &session.id.to_string()).button(&visit.say("Sign out there")).quiet())
    })
}

/// An instant as people read it, to the minute.
fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    let (day, time) = text.split_once('T').unwrap_or((&text, ""));
    format!("{day} {} UTC", time.get(..5).unwrap_or_default())
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Rename,
    /// Ends one of the person's sessions.
    End,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct ProfileForm {
    action: Action,
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: String,
    #[serde(default)]
    session: Option<LoginId>,
}

async fn submit(
    request: hosted::Request,
    State(core): State<Core>,
    Path(app): Path<AppId>,
    Sent { form, once }: Sent<ProfileForm>,
) -> Result<Reply> {
    once.run(core.tenancy.clone(), async move {
        let (visit, ()) = Visit::open(&core, &request, app, |_, visitor| visitor.person().map(|_| ())).await?;
        visit.check_form(&core, &form.csrf)?;
        match form.action {
            Action::Rename => {
                let typed = Flash::new().typed("first_name", &form.first_name).typed("last_name", &form.last_name);
                match rename(&core, &visit, &form).await {
                    Ok(()) => visit.done(path(app), "Your name has been saved."),
                    Err(error) => visit.failed(path(app), typed, error),
                }
            }
            Action::End => match end(&core, &visit, form.session).await {
                Ok(()) => visit.done(path(app), "The session has been ended."),
                Err(error) => visit.failed(path(app), Flash::new(), error),
            },
        }
    })
    .await
}

async fn rename(core: &Core, visit: &Visit, form: &ProfileForm) -> Result<()> {
    let name = |field: &str, text: &str| {
        text.parse::<OptionalName>().map_err(|problem| Error::invalid(visit.say(field), problem))
    };
    let (first, last) = (name("First name", &form.first_name)?, name("Last name", &form.last_name)?);
    let user = visit.visitor.person()?.clone();
    core.db.by(&user).write(move |tx| me::rename(tx, &user, &first, &last)).await
}

async fn end(core: &Core, visit: &Visit, session: Option<LoginId>) -> Result<()> {
    let session = session.ok_or_else(|| Error::not_found("session"))?;
    let user = visit.visitor.person()?.clone();
    core.db.by(&user).write(move |tx| me::sessions::end_one(tx, &user, session)).await
}
