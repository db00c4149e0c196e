//! Judges a batch piece by piece. What needs the database (plans, roles, known people) is asked for many pieces at once, each
//! plan and role a single time. What is right becomes bundles, which are staged.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    mem,
    sync::Arc,
};

use kernel::{AppId, Code, Error, Problems, Result, email_key};
use serde_json::Value;
use store::{Db, Tx};
use tenancy::{App, Authority, apps::parameters, people, roles};
use web::from_value;

use super::{
    Bundle, Findings, ImportTenant, ImportUser, Person, Piece, Place, StagedTenant, StagedUser,
    doubles::{Doubles, Seen},
    staged::Bundles,
    with_value,
};

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

/// A key that stands somewhere in the batch.
struct Named {
    place: Place,
    member: &'static str,
    key: String,
}

#[derive(Default)]
struct Questions {
    plans: Vec<Named>,
    roles: Vec<Named>,
    /// Everybody's address, as addresses are compared.
    people: Vec<(Place, String)>,
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
    doubles: Doubles,
    /// Items that are being read and have brought their workspace.
    with_tenant: HashSet<usize>,
    /// Whether what is right is kept for staging.
    stages: bool,
    bundles: Bundles,
}

impl Survey {
    /// One that `stages` gives bundles; the other only judges.
    pub(crate) fn new(app: Arc<App>, authority: Authority, stages: bool) -> Self {
        Self {
            app,
            authority,
            judged: Judged::default(),
            questions: Questions::default(),
            plans: Verdicts::new(),
            roles: Verdicts::new(),
            doubles: Doubles::default(),
            with_tenant: HashSet::new(),
            stages,
            bundles: Bundles::default(),
        }
    }

    pub(crate) fn judge(&mut self, piece: Piece) -> Result<()> {
        match piece {
            Piece::Wrong { tenant_of, is_person, place, problem } => {
                self.with_tenant.extend(tenant_of);
                self.judged.users += usize::from(is_person);
                self.judged.errors.add(place, problem);
            }
            Piece::Tenant { item, place, value } => {
                self.with_tenant.insert(item);
                self.judged.users += 1;
                if let Some(tenant) = self.read::<ImportTenant>(place, &value)? {
                    self.take_tenant(item, place, tenant);
                }
            }
            Piece::User { item, place, person } => {
                self.judged.users += 1;
                let read = match person {
                    Person::Read(user) => Some(*user),
                    Person::Given(value) => self.read::<ImportUser>(place, &value)?,
                };
                if let Some(user) = read {
                    self.take_user(item, place, user);
                }
            }
            Piece::Pause { item } => self.bundles.pause(item),
            Piece::End { item } => self.end(item),
        }
        Ok(())
    }

    fn read<T: serde::de::DeserializeOwned + schemars::JsonSchema + web::Validate + 'static>(
        &mut self,
        place: Place,
        given: &Value,
    ) -> Result<Option<T>> {
        match from_value(given) {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.code() == Code::ValidationFailed => {
                for problem in error.details() {
                    let text = with_value(&problem.message, given, &problem.field);
                    // What is wrong with the whole of it has no member's name.
                    match problem.field.as_str() {
                        "body" => self.judged.errors.add(place, text),
                        member => self.judged.errors.add(place.member(member), text),
                    }
                }
                let person = given.get("owner").unwrap_or(given);
                self.judged.passwords |= person.get("password").is_some_and(|password| !password.is_null());
                self.ask_all_the_same(place, given);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What is wrong in one way may be so in another, which is said too.
    fn ask_all_the_same(&mut self, place: Place, read: &Value) {
        let key = |member: &str| read[member].as_str().filter(|key| !key.trim().is_empty()).map(str::to_owned);
        let (plan, role) = (key("plan").filter(|_| read.get("username").is_none()), key("role"));
        self.questions.plans.extend(plan.map(|key| Named { place, member: "plan", key }));
        self.questions.roles.extend(role.map(|key| Named { place, member: "role", key }));
    }

    fn take_tenant(&mut self, item: usize, place: Place, tenant: ImportTenant) {
        if let Some(plan) = &tenant.plan {
            self.questions.plans.push(Named { place, member: "plan", key: plan.to_string() });
        }
        if tenant.owner.role.as_ref().is_some_and(|role| **role != *roles::OWNER) {
            self.judged.warnings.add(place.member("owner.role"), "is not used: an owner's role is OWNER");
        }
        self.judge_person(item, place.owner(), &tenant.owner);
        self.bundles.add_tenant(item, self.stages.then(|| StagedTenant::new(place, tenant)));
    }

    fn take_user(&mut self, item: usize, place: Place, user: ImportUser) {
        if let Some(role) = &user.role {
            self.questions.roles.push(Named { place, member: "role", key: role.to_string() });
        }
        self.judge_person(item, place, &user);
        self.bundles.add_user(item, self.stages.then(|| StagedUser::new(place, user)));
    }

    /// Looks at what concerns the person, wherever they stand.
    fn judge_person(&mut self, item: usize, place: Place, user: &ImportUser) {
        let key = email_key(&user.username);
        let seen = self.doubles.see(&key, item);
        if seen == Seen::Here {
            let problem = format_args!("{} is in this workspace twice", &*user.username);
            self.judged.errors.add(place.member("username"), problem);
        }
        if let Some(given) = &user.parameters {
            let mut problems = Problems::new();
            parameters::judge(&self.app.profile.user_parameters, given, "parameters", &mut problems);
            for problem in problems.finish().err().iter().flat_map(Error::details) {
                self.judged.errors.add(place.member(&problem.field), &problem.message);
            }
        }
        if let Some(password) = &user.password {
            self.judged.passwords = true;
            if self.doubles.differs(&key, &password.to_imported()) {
                let problem = "differs from the one that the person has elsewhere in the batch, which counts";
                self.judged.warnings.add(place.member("password"), problem);
            }
        }
        if seen == Seen::Never {
            self.questions.people.push((place, key));
        }
    }

    fn end(&mut self, item: usize) {
        self.judged.tenants += 1;
        if !self.with_tenant.remove(&item) {
            self.judged.errors.add(Place::Tenant(item), "is required");
        }
        self.bundles.end(item);
    }

    /// Whether so much has come together that it should be asked and stored before more is read.
    pub(crate) fn is_full(&self) -> bool {
        self.questions.people.len() >= MOST_QUESTIONS
            || self.questions.roles.len() + self.questions.plans.len() >= 4 * MOST_QUESTIONS
            || self.bundles.ready() >= MOST_QUESTIONS
    }

    /// Asks what is open.
    pub(crate) async fn ask(&mut self, db: &Db) -> Result<()> {
        let Questions { plans, roles, people } = mem::take(&mut self.questions);
        let new = |named: &[Named], known: &Verdicts| -> BTreeSet<String> {
            named.iter().filter(|named| !known.contains_key(&named.key)).map(|named| named.key.clone()).collect()
        };
        let (new_plans, new_roles) = (new(&plans, &self.plans), new(&roles, &self.roles));
        let (places, keys): (Vec<Place>, Vec<String>) = people.into_iter().unzip();
        let keys = Arc::new(keys);
        let asked = Arc::clone(&keys);
        let (app, authority) = (self.app.id, self.authority.clone());
        let answered = db.read(move |tx| {
            let plans = verdicts(tx, &new_plans, |tx, key| plan_problem(tx, app, key))?;
            let roles = verdicts(tx, &new_roles, |tx, key| role_problem(tx, app, &authority, key))?;
            Ok((plans, roles, people::known(tx, app, &asked)?))
        });
        let (new_plans, new_roles, known) = answered.await?;
        self.plans.extend(new_plans);
        self.roles.extend(new_roles);
        for (named, verdicts) in [(plans, &self.plans), (roles, &self.roles)] {
            for Named { place, member, key } in named {
                if let Some(Some(problem)) = verdicts.get(&key) {
                    self.judged.errors.add(place.member(member), problem);
                }
            }
        }
        let known: HashSet<String> = known.into_iter().collect();
        for (place, key) in places.into_iter().zip(keys.iter()).filter(|(_, key)| known.contains(*key)) {
            let text = format_args!("{key} is known already and is linked; their password stays");
            self.judged.warnings.add(place.member("username"), text);
        }
        Ok(())
    }

    /// Something that is not an error.
    pub(crate) fn warn(&mut self, place: &str, text: &str) {
        self.judged.warnings.add(place, text);
    }

    /// What is ready to be staged. Nothing of a batch that will be refused.
    pub(crate) fn take_bundles(&mut self) -> Vec<Bundle> {
        let bundles = self.bundles.take();
        if self.judged.errors.is_empty() { bundles } else { Vec::new() }
    }

    pub(crate) fn finish(self) -> Judged {
        self.judged
    }
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
