//! Kernel's types that are stored as the text they are parsed from.

use kernel::{Country, Currency, Locale};

use crate::{Arg, Cell, Column, ColumnType, ToArg, Value, WrongType, parsed};

macro_rules! texts {
    ($($type:ty: $text:ident),+ $(,)?) => { $(
        impl Column for $type {
            fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
                parsed(value)
            }
        }

        impl ToArg for $type {
            fn to_arg(&self) -> Arg<'_> {
                Arg::Text(self.$text().into())
            }
        }

        impl Cell for $type {
            const TYPE: ColumnType = ColumnType::Text;
        }
    )+ };
}

texts! { Country: code, Currency: code, Locale: code }
