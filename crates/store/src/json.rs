//! JSON in a text column.

use std::borrow::Cow;

use serde::{Serialize, de::DeserializeOwned};

use crate::{Arg, Cell, Column, ColumnType, ToArg, Value, WrongType};

/// A value that is stored as the text of its JSON: `args![Json(&tenant.metadata)]`, and `metadata as Json` in a
/// [`row!`](crate::row).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> Column for Json<T> {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        match value {
            Value::Text(text) => serde_json::from_str(text),
            // An `Option` takes it.
            Value::Null => serde_json::from_value(serde_json::Value::Null),
            _ => return Err(WrongType("wanted JSON in a text".into())),
        }
        .map(Json)
        .map_err(|error| WrongType(error.to_string()))
    }
}

impl<T: Serialize> ToArg for Json<T> {
    fn to_arg(&self) -> Arg<'_> {
        let text =
            serde_json::to_string(&self.0).expect("what is stored as JSON has texts for the names of its members");
        Arg::Text(Cow::Owned(text))
    }
}

impl<T: Serialize> Cell for Json<T> {
    const TYPE: ColumnType = ColumnType::Text;
}
