//! One transaction of an import: some staged rows become workspaces and members, and are gone. What cannot be stored any
//! more is left out and listed.

use std::collections::{BTreeMap, BTreeSet};

use ::store::Tx;
use billing::subscriptions::{self, FirstPlan};
use identity::login::credentials;
use kernel::{Code, Result};
use tenancy::{
    App, Tenancy, apps,
    members::{self, Joined, Joining},
    people,
    roles::{self, Role},
    workspaces::{self, Metadata, NewWorkspace, SignupBy, Tenant},
};

use super::{Import, ImportId, store};
use crate::batch::{Bundle, StagedTenant, StagedUser};

/// Stores these rows, which are the next ones of the import. Nothing happens when another node was quicker.
pub(super) fn store_rows(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    import: ImportId,
    rows: &[(String, Bundle)],
) -> Result<()> {
    apps::hold(tx, app.id)?;
    let Some(mut import) = store::hold(tx, app.id, import)? else { return Ok(()) };
    if import.quiet {
        tx.tell_nobody_outside();
    }
    let ids: Vec<String> = rows.iter().map(|(id, _)| id.clone()).collect();
    if store::use_up(tx, app.id, &ids)? == 0 {
        return Ok(());
    }
    let bundles: Vec<&Bundle> = rows.iter().map(|(_, bundle)| bundle).collect();
    let known = Known::look_up(tx, app, &import, &bundles)?;
    let mut current = match known.current {
        true => import.workspace_id().map(|id| workspaces::get(tx, app.id, id)).transpose()?,
        false => None,
    };
    for bundle in bundles {
        let item = i64::try_from(bundle.item).unwrap_or(i64::MAX);
        if import.item != Some(item) {
            current = None;
        }
        if let Some(tenant) = &bundle.tenant {
            current = make_workspace(tx, app, &known, &mut import, tenant)?;
            (import.item, import.workspace) = (Some(item), current.as_ref().map(|made| made.id.to_string()));
        }
        let users: Vec<_> = bundle.tenant.iter().map(|tenant| &tenant.owner).chain(&bundle.users).collect();
        join(tx, tenancy, app, &known, &mut import, current.as_ref(), &users)?;
    }
    store::progress(tx, &import)
}

/// What the rows name, looked up before anything is made: locks are taken in their order.
struct Known {
    /// Whether the first row belongs to a workspace that was made before, and that is still there.
    current: bool,
    plans: BTreeMap<String, Option<FirstPlan>>,
    no_plan: FirstPlan,
    roles: BTreeMap<Option<String>, Option<Role>>,
}

impl Known {
    fn look_up(tx: &mut Tx<'_>, app: &App, import: &Import, bundles: &[&Bundle]) -> Result<Self> {
        let continues = bundles.first().is_some_and(|first| first.tenant.is_none());
        let current = match import.workspace_id().filter(|_| continues) {
            None => false,
            Some(id) => {
                workspaces::lock(tx, id)?;
                !workspaces::existing(tx, app.id, &[id])?.is_empty()
            }
        };
        let tenants = bundles.iter().filter_map(|bundle| bundle.tenant.as_ref());
        let wanted: BTreeSet<&String> = tenants.filter_map(|tenant| tenant.plan.as_ref()).collect();
        let mut plans = BTreeMap::new();
        for key in wanted {
            plans.insert(key.clone(), unless_gone(subscriptions::prepare_first(tx, app, "plan", Some(key)))?);
        }
        let no_plan = subscriptions::prepare_first(tx, app, "plan", None)?;
        let people =
            bundles.iter().flat_map(|bundle| bundle.users.iter().chain(bundle.tenant.iter().map(|one| &one.owner)));
        let wanted: BTreeSet<&Option<String>> = people.map(|user| &user.role).collect();
        let mut found = BTreeMap::new();
        for key in wanted {
            found.insert(key.clone(), unless_gone(roles::assign(tx, app.id, key.as_deref()))?);
        }
        Ok(Self { current, plans, no_plan, roles: found })
    }
}

/// A plan or a role can go between approval and import.
fn unless_gone<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code() == Code::ValidationFailed => Ok(None),
        Err(error) => Err(error),
    }
}

fn make_workspace(
    tx: &mut Tx<'_>,
    app: &App,
    known: &Known,
    import: &mut Import,
    new: &StagedTenant,
) -> Result<Option<Tenant>> {
    let first = match &new.plan {
        None => &known.no_plan,
        Some(key) => match known.plans.get(key) {
            Some(Some(first)) => first,
            _ => {
                import.leave_out(format!("{}.plan", new.place), format!("there is no plan {key} any more"));
                return Ok(None);
            }
        },
    };
    let owner = &new.owner;
    let workspace = NewWorkspace {
        name: new.name.clone(),
        locale: new.locale,
        logo: new.logo.clone(),
        onboarded: new.onboarded,
        metadata: new.metadata.clone(),
        app_metadata: Metadata::new(),
        jit_provisioning: true,
        signup_by: SignupBy {
            email: owner.email.clone(),
            first_name: owner.first_name.clone(),
            last_name: owner.last_name.clone(),
        },
        billing: first.view.clone(),
    };
    let tenant = workspaces::create(tx, app.id, &workspace)?;
    subscriptions::begin_first(tx, app, tenant.id, first)?;
    import.done_tenants += 1;
    Ok(Some(tenant))
}

/// Makes people members of one workspace, or says why not.
fn join(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    known: &Known,
    import: &mut Import,
    tenant: Option<&Tenant>,
    users: &[&StagedUser],
) -> Result<()> {
    let Some(tenant) = tenant else {
        users.iter().for_each(|user| import.leave_out(&user.place, "the workspace could not be made, or is gone"));
        return Ok(());
    };
    let mut joining = Vec::with_capacity(users.len());
    for user in users {
        match known.roles.get(&user.role) {
            Some(Some(role)) => joining.push((*user, as_member(user, role))),
            _ => {
                let role = user.role.as_deref().unwrap_or_default();
                import.leave_out(&user.place, format!("there is no role {role} any more"));
            }
        }
    }
    let (users, joining): (Vec<&StagedUser>, Vec<_>) = joining.into_iter().unzip();
    let joined = members::add_all(tx, tenancy, app, tenant, &joining)?;
    let mut passwords = Vec::new();
    for (user, joined) in users.iter().zip(joined) {
        let Some(Joined { member, is_new_person }) = joined else {
            import.leave_out(&user.place, members::already_member(&user.email).public());
            continue;
        };
        import.done_users += 1;
        // Somebody who was here before keeps what they have: an import is no way to get at their account.
        if !is_new_person && !people::is_made_since(tx, app.id, member.user_id, import.created_at)? {
            continue;
        }
        if user.email_verified && !is_new_person {
            people::verify_email(tx, app.id, member.user_id)?;
        }
        passwords.extend(user.password.as_ref().map(|password| (member.user_id, password)));
    }
    credentials::import(tx, &tenancy.keyring, app.id, &passwords)
}

fn as_member<'a>(user: &'a StagedUser, role: &'a Role) -> Joining<'a> {
    Joining {
        email: &user.email,
        first_name: &user.first_name,
        last_name: &user.last_name,
        role,
        onboarded: user.onboarded,
        parameters: &user.parameters,
        email_verified: user.email_verified,
        invite: false,
    }
}
