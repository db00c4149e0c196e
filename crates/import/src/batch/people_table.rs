//! A table of people: one row each, the first of a workspace being its owner. Rows become the same pieces as JSON.

use std::collections::HashMap;

use kernel::{Error, Result};
use serde_json::{Map, Value};

use super::{MOST_TENANTS, MOST_USERS, Person, Piece, Place, csv::CsvRow};

const WORKSPACE: &str = "workspace";
const PLAN: &str = "plan";
/// Columns that are somebody's, and the members that they stand for.
const COLUMNS: [(&str, &str); 6] = [
    ("username", "username"),
    ("role", "role"),
    ("firstName", "firstName"),
    ("lastName", "lastName"),
    ("passwordValue", "password.value"),
    ("passwordAlgorithm", "password.algorithm"),
];

/// What stands where in a row.
pub struct PeopleTable {
    /// By column; `None` for one that means nothing here.
    columns: Vec<Option<&'static str>>,
    workspaces: HashMap<String, usize>,
    users: usize,
}

impl PeopleTable {
    /// From the first row; also the names of columns that mean nothing.
    pub fn of(header: &[String]) -> Result<(Self, Vec<String>)> {
        let known = |name: &str| {
            let names = COLUMNS.iter().map(|(column, _)| *column).chain([WORKSPACE, PLAN]);
            names.into_iter().find(|column| column.eq_ignore_ascii_case(name.trim()))
        };
        let columns: Vec<Option<&'static str>> = header.iter().map(|name| known(name)).collect();
        for needed in [WORKSPACE, "username"] {
            if !columns.contains(&Some(needed)) {
                return Err(Error::invalid("body", format!("must have a column {needed} in its first row")));
            }
        }
        let twice =
            columns.iter().flatten().find(|name| columns.iter().flatten().filter(|other| other == name).count() > 1);
        if let Some(name) = twice {
            return Err(Error::invalid("body", format!("must have the column {name} once")));
        }
        let unknown = header.iter().zip(&columns).filter(|(_, column)| column.is_none()).map(|(name, _)| name.clone());
        let unknown = unknown.collect();
        Ok((Self { columns, workspaces: HashMap::new(), users: 0 }, unknown))
    }

    /// How many there are so far.
    pub fn workspaces(&self) -> usize {
        self.workspaces.len()
    }

    /// The piece that a row stands for, or what is wrong with it.
    pub fn piece(&mut self, (line, fields): &CsvRow) -> Result<Piece> {
        let place = Place::Row(*line);
        self.users += 1;
        if self.users > MOST_USERS {
            return Err(Error::invalid("body", format!("must have at most {MOST_USERS} users, owners included")));
        }
        if fields.len() > self.columns.len() {
            return Ok(Piece::Wrong {
                tenant_of: None,
                is_person: true,
                place: place.to_string(),
                problem: "has more fields than the first row".into(),
            });
        }
        let given: HashMap<&str, &String> = self
            .columns
            .iter()
            .zip(fields)
            .filter_map(|(column, field)| Some(((*column)?, field)))
            .filter(|(_, field)| !field.is_empty())
            .collect();
        let Some(workspace) = given.get(WORKSPACE) else {
            return Ok(Piece::Wrong {
                tenant_of: None,
                is_person: true,
                place: place.member(WORKSPACE).to_string(),
                problem: "must not be empty".into(),
            });
        };
        let next = self.workspaces.len();
        let item = *self.workspaces.entry((*workspace).clone()).or_insert(next);
        if self.workspaces.len() > MOST_TENANTS {
            return Err(Error::invalid("body", format!("must have at most {MOST_TENANTS} workspaces")));
        }
        let user = person(&given);
        if item < next {
            return Ok(Piece::User { item, place, person: Person::Given(user) });
        }
        let mut tenant =
            Map::from_iter([("owner".to_owned(), user), ("name".to_owned(), Value::from(workspace.as_str()))]);
        if let Some(plan) = given.get(PLAN) {
            tenant.insert(PLAN.to_owned(), Value::from(plan.as_str()));
        }
        Ok(Piece::Tenant { item, place, value: tenant.into() })
    }
}

fn person(given: &HashMap<&str, &String>) -> Value {
    let mut user = Map::new();
    for (column, member) in COLUMNS {
        let Some(text) = given.get(column) else { continue };
        match member.split_once('.') {
            None => drop(user.insert(member.to_owned(), Value::from(text.as_str()))),
            Some((outer, inner)) => {
                user.entry(outer).or_insert_with(|| Map::new().into())[inner] = Value::from(text.as_str());
            }
        }
    }
    user.into()
}

/// What a member of a piece is called in the table.
pub fn column(member: &str) -> &str {
    let member = member.strip_prefix("owner.").unwrap_or(member);
    let known = COLUMNS.iter().find(|(_, stands_for)| *stands_for == member).map(|(column, _)| *column);
    known.unwrap_or(if member == "name" { WORKSPACE } else { member })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message about the first row that is too many, and how many there were before it.
    fn limit(workspace_of: impl Fn(usize) -> String) -> (usize, String) {
        let header = [WORKSPACE, "username"].map(str::to_owned);
        let (mut table, _) = PeopleTable::of(&header).expect("both columns");
        let mut row = |line| table.piece(&(line, vec![workspace_of(line), "ada@example.com".to_owned()]));
        let (count, refused) =
            (0..=MOST_USERS).find_map(|line| Some((line, row(line).err()?))).expect("there is a limit");
        (count, refused.public().to_owned())
    }

    #[test]
    fn a_table_is_no_longer_than_a_list_may_be() {
        let users = format!("body must have at most {MOST_USERS} users, owners included");
        assert_eq!(limit(|_| "acme".to_owned()), (MOST_USERS, users));
        let workspaces = format!("body must have at most {MOST_TENANTS} workspaces");
        assert_eq!(limit(|line| line.to_string()), (MOST_TENANTS, workspaces));
    }
}
