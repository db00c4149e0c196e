//! Which of several roles is the strongest. Pure.

use tenancy::roles::{OWNER, Role};

/// The one with most privileges, ADMIN among equals, then the oldest. OWNER is nobody's by a group.
pub(super) fn strongest(roles: Vec<Role>) -> Option<Role> {
    let mut roles: Vec<Role> = roles.into_iter().filter(|role| role.key != OWNER).collect();
    roles.sort_by_key(|role| (std::cmp::Reverse(role.privileges.len()), role.key != "ADMIN", role.id));
    roles.into_iter().next()
}

#[cfg(test)]
mod tests {
    use tenancy::roles::{PrivilegeId, PrivilegeRecord, RoleId};

    use super::*;

    fn role(id: u128, key: &str, privileges: usize) -> Role {
        let privilege = |n: usize| PrivilegeRecord {
            id: PrivilegeId::from_u128(n as u128),
            key: format!("P{n}"),
            description: String::new(),
        };
        Role {
            id: RoleId::from_u128(id),
            name: key.to_owned(),
            key: key.to_owned(),
            description: String::new(),
            privileges: (0..privileges).map(privilege).collect(),
            is_default: false,
        }
    }

    fn strongest_key(roles: &[(u128, &str, usize)]) -> Option<String> {
        strongest(roles.iter().map(|(id, key, privileges)| role(*id, key, *privileges)).collect()).map(|role| role.key)
    }

    #[test]
    fn most_privileges_win_and_owner_never_does() {
        assert_eq!(strongest_key(&[(1, "MEMBER", 3), (2, "ADMIN", 7)]).as_deref(), Some("ADMIN"));
        assert_eq!(strongest_key(&[(1, "OWNER", 8), (2, "MEMBER", 3)]).as_deref(), Some("MEMBER"));
        assert_eq!(strongest_key(&[(1, "EDITOR", 7), (2, "ADMIN", 7)]).as_deref(), Some("ADMIN"));
        assert_eq!(strongest_key(&[(2, "B", 1), (1, "A", 1)]).as_deref(), Some("A"));
        assert_eq!(strongest_key(&[(1, "OWNER", 8)]), None);
        assert_eq!(strongest_key(&[]), None);
    }
}
