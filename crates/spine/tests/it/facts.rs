//! The facts that these tests emit.

use spine::{Installation, emit};
use store::{Db, Tx};

spine::facts! {
    /// Every consumer can take it.
    Good = "good" {}
    /// The consumers of these tests refuse it.
    Bad = "bad" {}
    /// The consumers of these tests panic.
    Dreadful = "dreadful" {}
    /// The consumers of these tests run into a failing statement.
    Broken = "broken" {}
    /// A number was written.
    Written = "written" (i64)
    /// Something in a cache was revoked.
    ThingRevoked = "thing.revoked" { id: String }
    /// A role got another name.
    RoleRenamed = "role.renamed" { name: String }
}

fn emit_kind(tx: &mut Tx<'_>, kind: &str) -> kernel::Result<()> {
    match kind {
        "good" => emit(tx, Installation, &Good {}),
        "bad" => emit(tx, Installation, &Bad {}),
        "dreadful" => emit(tx, Installation, &Dreadful {}),
        "broken" => emit(tx, Installation, &Broken {}),
        other => panic!("no fact is called {other}"),
    }
}

pub(crate) async fn emit_kinds(db: &Db, kinds: &'static [&'static str]) {
    db.write(move |tx| kinds.iter().try_for_each(|kind| emit_kind(tx, kind))).await.unwrap();
}

pub(crate) fn write(tx: &mut Tx<'_>, number: i64) -> kernel::Result<()> {
    emit(tx, Installation, &Written(number))
}

pub(crate) async fn write_all(db: &Db, numbers: &'static [i64]) {
    db.write(move |tx| numbers.iter().try_for_each(|number| write(tx, *number))).await.unwrap();
}
