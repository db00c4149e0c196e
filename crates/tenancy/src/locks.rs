//! The locks of all rooms, in the order in which a transaction may take them. Taking one after a later one fails in
//! debug builds, so that tests find it before two servers wait for each other.

use kernel::{AppId, TenantId, UserId};

/// Ids of rooms above are texts here.
#[derive(Clone, Debug)]
pub enum Lock {
    /// What a whole app shares: its profile, roles and catalog, and whether it exists.
    App(AppId),
    /// One workspace and its members.
    Workspace(TenantId),
    /// Who is put on a plan, against its renaming and deletion.
    WorkspacesOnPlan(String),
    /// Who signs in through a federation connection, against its deletion.
    WorkspacesOfConnection(String),
    /// Who gets a role, against its deletion.
    MembersOfRole(String),
    /// A person's second factor.
    Factor(UserId),
    /// What is counted against somebody who may be guessing.
    Attempts(String),
    /// Which events an app knows by name.
    EventNames(AppId),
}

impl store::Lock for Lock {
    fn name(&self) -> String {
        match self {
            Self::App(id) => format!("app:{id}"),
            Self::Workspace(id) => format!("workspace:{id}"),
            Self::WorkspacesOnPlan(id) => format!("workspaces-on:{id}"),
            Self::WorkspacesOfConnection(id) => format!("workspaces-of:{id}"),
            Self::MembersOfRole(id) => format!("members-of:{id}"),
            Self::Factor(user) => format!("factor:{user}"),
            Self::Attempts(subject) => subject.clone(),
            Self::EventNames(app) => format!("event-names:{app}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::App(_) => 1,
            Self::Workspace(_) => 2,
            Self::WorkspacesOnPlan(_) => 3,
            Self::WorkspacesOfConnection(_) => 4,
            Self::MembersOfRole(_) => 5,
            Self::Factor(_) => 6,
            Self::Attempts(_) => 7,
            Self::EventNames(_) => 8,
        }
    }
}
