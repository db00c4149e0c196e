//! The rows of a bulk statement: tuples of values whose types PostgreSQL is told.

use kernel::{AppNumber, Id, IdKind, Timestamp};

use crate::{Arg, ToArg};

/// The type of a column in a bulk statement: PostgreSQL has to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Text,
    Int,
    Real,
    Bool,
    Bytes,
}

/// A value whose column type is known without looking at it.
pub trait Cell: ToArg {
    const TYPE: ColumnType;
}

/// One row for [`Tx::insert_all`](crate::Tx::insert_all): a tuple of cells.
pub trait Tuple {
    /// The names of its columns.
    type Names: AsRef<[&'static str]> + Copy;
    const TYPES: &'static [ColumnType];

    fn to_args(&self) -> Vec<Arg<'_>>;
}

macro_rules! cells {
    ($($column_type:ident: $($type:ty),+;)+) => { $($(
        impl Cell for $type {
            const TYPE: ColumnType = ColumnType::$column_type;
        }
    )+)+ };
}

cells! {
    Text: str, String;
    Int: i64, i32, u32, Timestamp, AppNumber;
    Real: f64;
    Bool: bool;
    Bytes: [u8], Vec<u8>;
}

impl<K: IdKind> Cell for Id<K> {
    const TYPE: ColumnType = ColumnType::Text;
}

impl<T: Cell> Cell for Option<T> {
    const TYPE: ColumnType = T::TYPE;
}

impl<T: Cell + ?Sized> Cell for &T {
    const TYPE: ColumnType = T::TYPE;
}

macro_rules! tuples {
    ($(($length:literal: $($cell:ident $index:tt),+))*) => { $(
        impl<$($cell: Cell),+> Tuple for ($($cell,)+) {
            type Names = [&'static str; $length];
            const TYPES: &'static [ColumnType] = &[$($cell::TYPE),+];

            fn to_args(&self) -> Vec<Arg<'_>> {
                vec![$(self.$index.to_arg()),+]
            }
        }
    )* };
}

tuples! {
    (1: A 0)
    (2: A 0, B 1)
    (3: A 0, B 1, C 2)
    (4: A 0, B 1, C 2, D 3)
    (5: A 0, B 1, C 2, D 3, E 4)
    (6: A 0, B 1, C 2, D 3, E 4, F 5)
    (7: A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (10: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (11: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (12: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
}
