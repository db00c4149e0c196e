//! Judges a batch piece by piece. What needs the database (plans, roles, known people) is asked for many pieces at once, each
//! plan and role a single time. What is right becomes bundles, which are staged.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    mem,
    sync::Arc,
};

use kernel::{AppId, Code, Error, Locale, Problems, Result, email_key, text::MAX_NAME};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Db, Tx};
use tenancy::{
    App, Authority,
    apps::parameters::{self, Parameters},
    people, roles,
    workspaces::Metadata,
};
use vault::{passwords::Imported, sha256_bytes};
use web::from_value;

use super::{Findings, ImportTenant, ImportUser, MOST_AT_ONCE, Piece, people_table, with_value};

/// A workspace that was judged.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StagedTenant {
    pub(crate) name: String,
    pub(crate) plan: Option<String>,
    pub(crate) logo: Option<String>,
    pub(crate) metadata: Metadata,
    pub(crate) locale: Locale,
    pub(crate) onboarded: bool,
    pub(crate) owner: StagedUser,
    /// In the batch: `[0].tenant`, `row 7`.
    pub(crate) place: String,
}

/// Somebody who was judged.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StagedUser {
    /// In the batch: `[0].tenant.owner`, `[0].users[3]`, `row 7`.
    pub(crate) place: String,
    pub(crate) email: String,
    pub(crate) role: Option<String>,
    pub(crate) first_name: String,
    pub(crate) last_name: String,
    pub(crate) onboarded: bool,
    pub(crate) email_verified: bool,
    #[serde(default)]
    pub(crate) parameters: Parameters,
    pub(crate) password: Option<Imported>,
}

/// What is staged in one row: people of one workspace, and the workspace itself in its first row.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Bundle {
    #[serde(skip)]
    pub(crate) item: usize,
    /// The workspace is 0, whatever came first.
    #[serde(skip)]
    pub(crate) position: usize,
    pub(crate) tenant: Option<StagedTenant>,
    pub(crate) users: Vec<StagedUser>,
}

impl Bundle {
    pub(crate) fn people(&self) -> usize {
        self.users.len() + usize::from(self.tenant.is_some())
    }
}

/// What came of a batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judged {
    pub(crate) tenants: usize,
    pub(crate) users: usize,
    pub(crate) passwords: bool,
    pub(crate) errors: Findings,
    pub(crate) warnings: Findings,
}

/// Pieces whose questions are asked together.
const MOST_QUESTIONS: usize = 500;

/// Enough of a digest to tell a hundred thousand apart.
type Mark = [u8; 16];

fn mark(text: &[u8]) -> Mark {
    let digest = sha256_bytes(text);
    let mut mark = Mark::default();
    mark.copy_from_slice(&digest[..16]);
    mark
}

/// A key that stands somewhere in the batch.
struct Named {
    place: String,
    key: String,
}

#[derive(Default)]
struct Questions {
    plans: Vec<Named>,
    roles: Vec<Named>,
    people: Vec<Named>,
}

/// What is wrong with a key, if anything.
type Verdicts = HashMap<String, Option<String>>;

pub(crate) struct Survey {
    app: Arc<App>,
    authority: Authority,
    judged: Judged,
    questions: Questions,
    plans: Verdicts,
    roles: Verdicts,
    /// Everybody in the batch, with the password that they first came with.
    passwords: HashMap<Mark, Option<Mark>>,
    items: HashMap<usize, Item>,
    bundles: Vec<Bundle>,
}

/// An item that is being read.
#[derive(Default)]
struct Item {
    has_tenant: bool,
    tenant: Option<StagedTenant>,
    users: Vec<StagedUser>,
    /// Rows of it that are on their way, the workspace's apart.
    rows: usize,
    addresses: HashSet<Mark>,
}

impl Survey {
    pub(crate) fn new(app: Arc<App>, authority: Authority) -> Self {
        Self {
            app,
            authority,
            judged: Judged::default(),
            questions: Questions::default(),
            plans: Verdicts::new(),
            roles: Verdicts::new(),
            passwords: HashMap::new(),
            items: HashMap::new(),
            bundles: Vec::new(),
        }
    }

    pub(crate) fn judge(&mut self, piece: Piece) -> Result<()> {
        match piece {
            Piece::Wrong { tenant_of, place, problem } => {
                if let Some(item) = tenant_of {
                    self.item(item).has_tenant = true;
                }
                self.judged.errors.add(&place, &problem);
            }
            Piece::Tenant { item, place, value } => {
                self.item(item).has_tenant = true;
                self.judged.users += 1;
                if let Some(tenant) = self.read::<ImportTenant>(&place, &value)? {
                    self.take_tenant(item, &place, tenant);
                }
            }
            Piece::User { item, place, value } => {
                self.judged.users += 1;
                if let Some(user) = self.read::<ImportUser>(&place, &value)? {
                    self.take_user(item, &place, &user);
                }
            }
            Piece::Pause { item } => self.bundle(item, true),
            Piece::End { item } => self.end(item),
        }
        Ok(())
    }

    fn item(&mut self, item: usize) -> &mut Item {
        self.items.entry(item).or_default()
    }

    fn read<T: serde::de::DeserializeOwned + schemars::JsonSchema + web::Validate + 'static>(
        &mut self,
        place: &str,
        given: &Value,
    ) -> Result<Option<T>> {
        match from_value(given) {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.code() == Code::ValidationFailed => {
                for problem in error.details() {
                    // What is wrong with the whole of it has no member's name.
                    let whole = problem.field == "body";
                    let place = if whole { place.to_owned() } else { member_of(place, &problem.field) };
                    self.judged.errors.add(&place, &with_value(&problem.message, given, &problem.field));
                }
                self.ask_all_the_same(place, given);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What is wrong in one way may be so in another, which is said too.
    fn ask_all_the_same(&mut self, place: &str, read: &Value) {
        let key = |member: &str| read[member].as_str().filter(|key| !key.trim().is_empty()).map(str::to_owned);
        let (plan, role) = (key("plan").filter(|_| read.get("username").is_none()), key("role"));
        self.questions.plans.extend(plan.map(|key| Named { place: member_of(place, "plan"), key }));
        self.questions.roles.extend(role.map(|key| Named { place: member_of(place, "role"), key }));
    }

    fn take_tenant(&mut self, item: usize, place: &str, tenant: ImportTenant) {
        if let Some(plan) = &tenant.plan {
            let key = plan.to_string();
            self.questions.plans.push(Named { place: member_of(place, "plan"), key });
        }
        if tenant.owner.role.as_ref().is_some_and(|role| **role != *roles::OWNER) {
            self.judged.warnings.add(&member_of(place, "owner.role"), "is not used: an owner's role is OWNER");
        }
        // Somebody's row is their own place; in JSON an owner has one within the workspace.
        let own = if is_row(place) { place.to_owned() } else { format!("{place}.owner") };
        let owner = self.stage(item, &own, &tenant.owner);
        let full_name = people::full_name(&owner.first_name, &owner.last_name);
        let default = if full_name.is_empty() { owner.email.clone() } else { full_name };
        self.item(item).tenant = Some(StagedTenant {
            place: place.to_owned(),
            name: tenant.name.map_or_else(|| default.chars().take(MAX_NAME).collect(), String::from),
            plan: tenant.plan.map(String::from),
            logo: tenant.logo.map(String::from),
            metadata: tenant.metadata.unwrap_or_default(),
            locale: tenant.locale.unwrap_or(Locale::ENGLISH),
            onboarded: tenant.onboarded.unwrap_or(false),
            owner: StagedUser { role: Some(roles::OWNER.to_owned()), ..owner },
        });
        self.bundle(item, false);
    }

    fn take_user(&mut self, item: usize, place: &str, user: &ImportUser) {
        if let Some(role) = &user.role {
            let key = role.to_string();
            self.questions.roles.push(Named { place: member_of(place, "role"), key });
        }
        let staged = self.stage(item, place, user);
        self.item(item).users.push(staged);
        self.bundle(item, false);
    }

    /// Looks at what concerns the person, wherever they stand.
    fn stage(&mut self, item: usize, place: &str, user: &ImportUser) -> StagedUser {
        let key = email_key(&user.username);
        let person = mark(key.as_bytes());
        let username = member_of(place, "username");
        if !self.item(item).addresses.insert(person) {
            self.judged.errors.add(&username, &format!("{} is in this workspace twice", &*user.username));
        }
        if let Some(given) = &user.parameters {
            let mut problems = Problems::new();
            parameters::judge(&self.app.profile.user_parameters, given, "parameters", &mut problems);
            for problem in problems.finish().err().iter().flat_map(Error::details) {
                self.judged.errors.add(&member_of(place, &problem.field), &problem.message);
            }
        }
        let password = user.password.as_ref().map(|password| password.to_imported());
        self.judged.passwords |= password.is_some();
        let brought = password.as_ref().and_then(|password| password.to_json().ok()).map(|json| mark(&json));
        match self.passwords.get_mut(&person) {
            None => {
                self.questions.people.push(Named { place: username, key });
                self.passwords.insert(person, brought);
            }
            Some(first) if first.is_none() => *first = brought,
            Some(first) if brought.is_some() && *first != brought => {
                let problem = "differs from the one that the person has elsewhere in the batch, which counts";
                self.judged.warnings.add(&member_of(place, "password"), problem);
            }
            Some(_) => {}
        }
        let name = |name: &Option<kernel::OptionalName>| name.clone().map(String::from).unwrap_or_default();
        StagedUser {
            place: place.to_owned(),
            email: user.username.to_string(),
            role: user.role.clone().map(String::from),
            first_name: name(&user.first_name),
            last_name: name(&user.last_name),
            onboarded: user.onboarded.unwrap_or(false),
            email_verified: user.email_verified.unwrap_or(false),
            parameters: user.parameters.clone().unwrap_or_default(),
            password,
        }
    }

    /// Makes rows of the people who have come together, or of all that are left.
    fn bundle(&mut self, item: usize, all: bool) {
        let waiting = self.item(item);
        if waiting.users.len() + usize::from(waiting.tenant.is_some()) < MOST_AT_ONCE && !all {
            return;
        }
        // Before its workspace nobody is stored, whatever came first.
        let tenant = waiting.tenant.take();
        let position = if tenant.is_some() { 0 } else { waiting.rows + 1 };
        waiting.rows += usize::from(tenant.is_none());
        let users = mem::take(&mut waiting.users);
        if tenant.is_some() || !users.is_empty() {
            self.bundles.push(Bundle { item, position, tenant, users });
        }
    }

    fn end(&mut self, item: usize) {
        self.judged.tenants += 1;
        if !self.item(item).has_tenant {
            self.judged.errors.add(&format!("[{item}].tenant"), "is required");
        }
        self.bundle(item, true);
        self.items.remove(&item);
    }

    /// Whether so much has come together that it should be asked and stored before more is read.
    pub(crate) fn is_full(&self) -> bool {
        self.questions.people.len() >= MOST_QUESTIONS
            || self.questions.roles.len() + self.questions.plans.len() >= 4 * MOST_QUESTIONS
            || self.bundles.len() >= MOST_QUESTIONS
    }

    /// Asks what is open.
    pub(crate) async fn ask(&mut self, db: &Db) -> Result<()> {
        let Questions { plans, roles, people } = mem::take(&mut self.questions);
        let new = |named: &[Named], known: &Verdicts| -> BTreeSet<String> {
            named.iter().filter(|named| !known.contains_key(&named.key)).map(|named| named.key.clone()).collect()
        };
        let (new_plans, new_roles) = (new(&plans, &self.plans), new(&roles, &self.roles));
        let keys: Vec<String> = people.iter().map(|named| named.key.clone()).collect();
        let (app, authority) = (self.app.id, self.authority.clone());
        let answered = db.read(move |tx| {
            let plans = verdicts(tx, &new_plans, |tx, key| plan_problem(tx, app, key))?;
            let roles = verdicts(tx, &new_roles, |tx, key| role_problem(tx, app, &authority, key))?;
            Ok((plans, roles, people::known(tx, app, &keys)?))
        });
        let (new_plans, new_roles, known) = answered.await?;
        self.plans.extend(new_plans);
        self.roles.extend(new_roles);
        for (named, verdicts) in [(plans, &self.plans), (roles, &self.roles)] {
            for Named { place, key } in named {
                if let Some(Some(problem)) = verdicts.get(&key) {
                    self.judged.errors.add(&place, problem);
                }
            }
        }
        let known: HashSet<String> = known.into_iter().collect();
        for Named { place, key } in people.into_iter().filter(|named| known.contains(&named.key)) {
            self.judged.warnings.add(&place, &format!("{key} is known already and is linked; their password stays"));
        }
        Ok(())
    }

    /// Something that is not an error.
    pub(crate) fn warn(&mut self, place: &str, text: &str) {
        self.judged.warnings.add(place, text);
    }

    /// What is ready to be staged. Nothing of a batch that will be refused.
    pub(crate) fn take_bundles(&mut self) -> Vec<Bundle> {
        let bundles = mem::take(&mut self.bundles);
        if self.judged.errors.is_empty() { bundles } else { Vec::new() }
    }

    pub(crate) fn finish(self) -> Judged {
        self.judged
    }
}

/// Of a table each row is a place.
fn is_row(place: &str) -> bool {
    place.starts_with("row ")
}

/// The place of a member, or of the column that stands for it.
fn member_of(place: &str, member: &str) -> String {
    if is_row(place) { format!("{place}, {}", people_table::column(member)) } else { format!("{place}.{member}") }
}

fn verdicts(
    tx: &mut Tx<'_>,
    keys: &BTreeSet<String>,
    mut problem: impl FnMut(&mut Tx<'_>, &str) -> Result<Option<String>>,
) -> Result<Verdicts> {
    keys.iter().map(|key| Ok((key.clone(), problem(tx, key)?))).collect()
}

fn plan_problem(tx: &mut Tx<'_>, app: AppId, key: &str) -> Result<Option<String>> {
    let known = billing::catalog::find_plan_by_key(tx, app, key)?.is_some();
    Ok((!known).then(|| format!("there is no plan {key}")))
}

fn role_problem(tx: &mut Tx<'_>, app: AppId, authority: &Authority, key: &str) -> Result<Option<String>> {
    match roles::find_by_key(tx, app, key)? {
        None => Ok(Some(format!("there is no role {key}"))),
        Some(role) => Ok(authority.may_give(&role).err().map(|error: Error| error.public().to_owned())),
    }
}
