//! A room's register of its tables: what their rows belong to, when they expire, and what is sealed in them.
//!
//! From it follow the statements that delete what a deletion left behind, that sweep what has expired, and that seal
//! again after a change of the master key. A test over the schema fails when a table is missing in it.

use std::time::Duration;

use kernel::AppId;

use crate::{Arg, ToArg as _, text_enum};

text_enum! {
    /// What a row can belong to and is deleted with, by the column that says so.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Owner {
        App = "app_id",
        Workspace = "tenant_id",
        Person = "user_id",
        Secret = "secret_id",
    }
}

/// One table, declared with [`table!`](crate::table).
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    /// The columns that tell its rows apart.
    pub key: &'static str,
    pub owners: &'static [Owned],
    pub expiry: Option<Expiry>,
    pub sealed: &'static [SealedColumn],
    /// Why its rows outlive their owners, if they do.
    pub kept: Option<&'static str>,
    /// Which background work or trigger looks for rows here by itself, if any: whoever brings an app in puts these in last.
    pub acted_on: Option<&'static str>,
    /// Why its rows do not move with their app to another installation, if they do not.
    pub stays: Option<&'static str>,
}

impl Table {
    /// How rows that belong to such an owner are deleted.
    pub fn purge_of(&self, owner: Owner) -> Option<&'static Owned> {
        self.owners.iter().find(|owned| owned.by == owner)
    }
}

/// Rows go with their owner.
#[derive(Debug)]
pub struct Owned {
    pub by: Owner,
    pub app: AppColumn,
    /// Deletes at most `$2` rows of the app `$1`, or in that app of the owner `$3`.
    pub purge: &'static str,
}

text_enum! {
    /// The column that says which app a row is of.
    pub enum AppColumn {
        Id = "app_id",
        /// Of tables of very many short rows.
        Number = "app_number",
    }
}

impl AppColumn {
    /// What stands there for an app.
    pub fn of(self, app: AppId) -> Arg<'static> {
        match self {
            Self::Id => app.to_arg().into_owned(),
            Self::Number => app.number().to_arg().into_owned(),
        }
    }
}

/// Rows go after a while.
#[derive(Debug)]
pub struct Expiry {
    /// Deletes at most `$2` rows that expired before `$1`.
    pub sweep: &'static str,
    /// How long they are kept beyond their end.
    pub kept_for: Duration,
}

/// A column of sealed values. A row is named by one column beside its app, as where it was sealed.
#[derive(Debug)]
pub struct SealedColumn {
    pub table: &'static str,
    pub column: &'static str,
    /// The column that names a row.
    pub row: &'static str,
    /// Up to 100 rows that were not sealed with the key whose values begin with `$1`.
    pub find: &'static str,
    /// Replaces `$3` by `$4`, unless it was changed meanwhile: what was written then is sealed with the present key.
    pub replace: &'static str,
}

/// Declares a table: its name, its key, and
/// - `of app, person`: what its rows belong to (`app`, `numbered_app`, `workspace`, `person`, `secret`);
/// - `expires "expires_at" + KEPT, unless "…"`: when they may be swept, how much later that happens, and what forbids it;
/// - `sealed "secret" by "id"`: a sealed column, and the column that names a row where it was sealed;
/// - `kept "why"`: rows that outlive their owners;
/// - `acted_on "by whom"`: background work looks for rows here;
/// - `stays "why"`: rows that do not move with their app to another installation.
#[macro_export]
macro_rules! table {
    (
        $name:literal ($key:literal)
        $(of $($owner:ident),+)?
        $(; expires $at:literal + $kept_for:expr $(, unless $unless:literal)?)?
        $(; sealed $($column:literal by $row:literal),+)?
        $(; kept $why:literal)?
        $(; acted_on $by:literal)?
        $(; stays $reason:literal)?
    ) => {
        $crate::Table {
            name: $name,
            key: $key,
            owners: &[$($($crate::__owned!($owner, $name, $key)),+)?],
            expiry: $crate::__option!($($crate::Expiry {
                sweep: concat!(
                    "DELETE FROM ", $name, " WHERE (", $key, ") IN (SELECT ", $key, " FROM ", $name,
                    " WHERE ", $at, " < $1", $(" AND NOT ", $unless,)? " LIMIT $2)"
                ),
                kept_for: $kept_for,
            })?),
            sealed: &[$($($crate::SealedColumn {
                table: $name,
                column: $column,
                row: $row,
                find: concat!(
                    "SELECT ", $row, ", app_id, ", $column, " FROM ", $name, " WHERE ", $column, " <> '' ",
                    "AND substr(", $column, ", 1, length($1)) <> $1 LIMIT 100"
                ),
                replace: concat!(
                    "UPDATE ", $name, " SET ", $column, " = $4 WHERE app_id IS NOT DISTINCT FROM $1 AND ",
                    $row, " = $2 AND ", $column, " = $3"
                ),
            }),+)?],
            kept: $crate::__option!($($why)?),
            acted_on: $crate::__option!($($by)?),
            stays: $crate::__option!($($reason)?),
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __owned {
    (app, $name:literal, $key:literal) => { $crate::__owned!(@ App, $name, $key, "app_id = $1") };
    (numbered_app, $name:literal, $key:literal) => {
        $crate::__owned!(@ App by Number, $name, $key, "app_number = $1")
    };
    (workspace, $name:literal, $key:literal) => {
        $crate::__owned!(@ Workspace, $name, $key, "app_id = $1 AND tenant_id = $3")
    };
    (person, $name:literal, $key:literal) => {
        $crate::__owned!(@ Person, $name, $key, "app_id = $1 AND user_id = $3")
    };
    (secret, $name:literal, $key:literal) => {
        $crate::__owned!(@ Secret, $name, $key, "app_id = $1 AND secret_id = $3")
    };
    (@ $owner:ident, $name:literal, $key:literal, $condition:literal) => {
        $crate::__owned!(@ $owner by Id, $name, $key, $condition)
    };
    (@ $owner:ident by $app:ident, $name:literal, $key:literal, $condition:literal) => {
        $crate::Owned {
            by: $crate::Owner::$owner,
            app: $crate::AppColumn::$app,
            purge: concat!(
                "DELETE FROM ", $name, " WHERE (", $key, ") IN (SELECT ", $key, " FROM ", $name,
                " WHERE ", $condition, " LIMIT $2)"
            ),
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __option {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}
