//! What a transaction can keep for itself until it ends.

/// A named lock and its place in the one order in which locks may be taken: two transactions that take the same two in
/// different orders would wait for each other. `tenancy::locks` has the list.
pub trait Lock {
    /// Who else has to wait: those who take a lock with the same name.
    fn name(&self) -> String;

    /// A transaction that holds a lock takes none of a lower rank.
    fn rank(&self) -> u8;
}

/// A lock that concerns the whole database, such as `migrations`. Taken before any other.
#[derive(Clone, Copy, Debug)]
pub struct WholeDatabase(pub &'static str);

impl Lock for WholeDatabase {
    fn name(&self) -> String {
        self.0.to_owned()
    }

    fn rank(&self) -> u8 {
        0
    }
}
