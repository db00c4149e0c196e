//! Statement arguments: a small closed set of types that both engines understand.

use std::borrow::Cow;

use kernel::{AppNumber, Id, IdKind, Timestamp};

/// One bound value. Made by [`ToArg`], usually through [`args!`](crate::args). Not `Debug`: arguments may be secret.
#[derive(Clone)]
pub enum Arg<'a> {
    Null,
    Int(i64),
    Real(f64),
    Bool(bool),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// For `= ANY($n)`.
    TextList(Vec<Cow<'a, str>>),
    /// For `= ANY($n)`.
    IntList(Vec<i64>),
}

impl Arg<'_> {
    pub fn into_owned(self) -> Arg<'static> {
        match self {
            Arg::Null => Arg::Null,
            Arg::Int(value) => Arg::Int(value),
            Arg::Real(value) => Arg::Real(value),
            Arg::Bool(value) => Arg::Bool(value),
            Arg::Text(value) => Arg::Text(Cow::Owned(value.into_owned())),
            Arg::Bytes(value) => Arg::Bytes(Cow::Owned(value.into_owned())),
            Arg::TextList(values) => {
                Arg::TextList(values.into_iter().map(|value| Cow::Owned(value.into_owned())).collect())
            }
            Arg::IntList(values) => Arg::IntList(values),
        }
    }
}

/// What can be bound to a parameter.
pub trait ToArg {
    fn to_arg(&self) -> Arg<'_>;
}

/// The arguments of a statement, in the order of `$1`, `$2`, …: `tx.exec(SQL, &args![id, name])`.
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => { [$($crate::ToArg::to_arg(&$value)),*] };
}

impl ToArg for str {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Text(Cow::Borrowed(self))
    }
}

impl ToArg for String {
    fn to_arg(&self) -> Arg<'_> {
        self.as_str().to_arg()
    }
}

impl ToArg for [u8] {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Bytes(Cow::Borrowed(self))
    }
}

impl ToArg for Vec<u8> {
    fn to_arg(&self) -> Arg<'_> {
        self.as_slice().to_arg()
    }
}

impl ToArg for [String] {
    fn to_arg(&self) -> Arg<'_> {
        Arg::TextList(self.iter().map(|text| Cow::Borrowed(text.as_str())).collect())
    }
}

impl ToArg for Vec<String> {
    fn to_arg(&self) -> Arg<'_> {
        self.as_slice().to_arg()
    }
}

impl<K: IdKind> ToArg for [Id<K>] {
    fn to_arg(&self) -> Arg<'_> {
        Arg::TextList(self.iter().map(|id| Cow::Owned(id.to_string())).collect())
    }
}

impl<K: IdKind> ToArg for Vec<Id<K>> {
    fn to_arg(&self) -> Arg<'_> {
        self.as_slice().to_arg()
    }
}

impl ToArg for [i64] {
    fn to_arg(&self) -> Arg<'_> {
        Arg::IntList(self.to_vec())
    }
}

impl ToArg for Vec<i64> {
    fn to_arg(&self) -> Arg<'_> {
        self.as_slice().to_arg()
    }
}

impl ToArg for i64 {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Int(*self)
    }
}

impl ToArg for i32 {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Int((*self).into())
    }
}

impl ToArg for u32 {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Int((*self).into())
    }
}

impl ToArg for bool {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Bool(*self)
    }
}

impl ToArg for f64 {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Real(*self)
    }
}

impl ToArg for Timestamp {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Int(self.as_micros())
    }
}

impl<K: IdKind> ToArg for Id<K> {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Text(Cow::Owned(self.to_string()))
    }
}

impl ToArg for AppNumber {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Int(self.as_i64())
    }
}

impl<T: ToArg> ToArg for Option<T> {
    fn to_arg(&self) -> Arg<'_> {
        self.as_ref().map_or(Arg::Null, ToArg::to_arg)
    }
}

impl<T: ToArg + ?Sized> ToArg for &T {
    fn to_arg(&self) -> Arg<'_> {
        (**self).to_arg()
    }
}

impl ToArg for Arg<'_> {
    fn to_arg(&self) -> Arg<'_> {
        self.clone()
    }
}
