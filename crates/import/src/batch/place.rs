//! Where in a batch something stands. It is written out only where there is something to say: most of a batch is right.

use std::fmt;

use super::people_table;

/// The place of a workspace or a person. Items are counted from 0, lines of a table from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `[0].tenant`
    Tenant(usize),
    /// `[0].tenant.owner`
    Owner(usize),
    /// `[0].users[3]`
    User(usize, usize),
    /// `row 7`, of a table.
    Row(usize),
}

impl Place {
    /// In JSON an owner has a place within the workspace; somebody's row is their own.
    pub(super) const fn owner(self) -> Self {
        match self {
            Self::Tenant(item) => Self::Owner(item),
            other => other,
        }
    }

    /// The place of a member, or of the column that stands for it.
    pub(super) const fn member(self, name: &str) -> MemberPlace<'_> {
        MemberPlace { place: self, name }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant(item) => write!(f, "[{item}].tenant"),
            Self::Owner(item) => write!(f, "[{item}].tenant.owner"),
            Self::User(item, number) => write!(f, "[{item}].users[{number}]"),
            Self::Row(line) => write!(f, "row {line}"),
        }
    }
}

/// Part of what stands at a place.
pub(super) struct MemberPlace<'a> {
    place: Place,
    name: &'a str,
}

impl fmt::Display for MemberPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Row(_) => write!(f, "{}, {}", self.place, people_table::column(self.name)),
            place => write!(f, "{place}.{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_as_the_batch_is_written() {
        let told = |place: Place, member| (place.to_string(), place.member(member).to_string());
        let both = |place: &str, member: &str| (place.to_owned(), member.to_owned());
        assert_eq!(told(Place::Tenant(4), "plan"), both("[4].tenant", "[4].tenant.plan"));
        let owner = Place::Tenant(4).owner();
        assert_eq!(told(owner, "username"), both("[4].tenant.owner", "[4].tenant.owner.username"));
        assert_eq!(told(Place::User(4, 2), "role"), both("[4].users[2]", "[4].users[2].role"));
        let row = Place::Row(7).owner();
        assert_eq!(told(row, "owner.password.value"), both("row 7", "row 7, passwordValue"));
        assert_eq!(told(row, "name"), both("row 7", "row 7, workspace"));
    }
}
