//! Rows declared once: which columns a type is read from, and texts put together from such declarations at compile time.

/// Declares the columns of a type: gives it [`FromRow`](crate::FromRow) and `COLUMNS`, the list to put after `SELECT` or
/// `RETURNING` with [`sql!`](crate::sql).
///
/// ```ignore
/// row! {
///     Tenant = "tenants" {
///         id,                                                   // the column of the same name
///         plan: "plan_key",                                     // a column of another name
///         trial = "COALESCE(tenants.trial_ends_at > $1, FALSE)", // an expression
///         metadata as Json,                                     // JSON in a text column
///         signup_by of SignupBy,                                // several columns, declared by that type
///     }
///     privileges: Vec::new(),                                   // not in the row
/// }
/// tx.opt::<Tenant>(sql!("SELECT ", Tenant::COLUMNS, " FROM tenants WHERE app_id = $2 AND id = $3"), …)
/// ```
#[macro_export]
macro_rules! row {
    (
        $type:ident = $table:literal {
            $($field:ident $(: $column:literal)? $(= $expression:literal)? $(as $json:ident)? $(of $part:ident)?),+ $(,)?
        }
        $($absent:ident: $value:expr),* $(,)?
    ) => {
        impl $type {
            pub(crate) const COLUMNS: &'static str = {
                const COLUMNS: &[&str] =
                    &[$($crate::__column!($table, $field $(: $column)? $(= $expression)? $(of $part)?)),+];
                $crate::joined!(COLUMNS, ", ")
            };
        }

        impl $crate::FromRow for $type {
            fn from_row(row: &$crate::Row<'_>) -> ::kernel::Result<Self> {
                Ok(Self {
                    $($field: $crate::__read!(row, $field $(: $column)? $(= $expression)? $(as $json)? $(of $part)?),)+
                    $($absent: $value,)*
                })
            }
        }
    };
}

/// One entry of a list of columns.
#[doc(hidden)]
#[macro_export]
macro_rules! __column {
    ($table:literal, $field:ident) => {
        concat!($table, ".", stringify!($field))
    };
    ($table:literal, $field:ident : $column:literal) => {
        concat!($table, ".", $column)
    };
    ($table:literal, $field:ident = $expression:literal) => {
        concat!($expression, " AS ", stringify!($field))
    };
    ($table:literal, $field:ident of $part:ident) => {
        $part::COLUMNS
    };
}

/// How a field is read.
#[doc(hidden)]
#[macro_export]
macro_rules! __read {
    ($row:ident, $field:ident of $part:ident) => {
        <$part as $crate::FromRow>::from_row($row)?
    };
    ($row:ident, $field:ident : $column:literal as Json) => {
        $row.get::<$crate::Json<_>>($column)?.0
    };
    ($row:ident, $field:ident : $column:literal) => {
        $row.get($column)?
    };
    ($row:ident, $field:ident $(= $expression:literal)? as Json) => {
        $row.get::<$crate::Json<_>>(stringify!($field))?.0
    };
    ($row:ident, $field:ident $(= $expression:literal)?) => {
        $row.get(stringify!($field))?
    };
}

/// One statement out of constant parts, put together at compile time: literals, `COLUMNS` of a [`row!`](crate::row),
/// shared conditions.
#[macro_export]
macro_rules! sql {
    ($($part:expr),+ $(,)?) => {{
        const PARTS: &[&str] = &[$($part),+];
        $crate::joined!(PARTS, "")
    }};
}

/// The constant texts of a slice with a separator between them.
#[doc(hidden)]
#[macro_export]
macro_rules! joined {
    ($parts:expr, $separator:literal) => {{
        const BYTES: [u8; $crate::joined_length($parts, $separator)] = $crate::joined_bytes($parts, $separator);
        const TEXT: &str = match ::core::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("texts joined to texts are a text"),
        };
        TEXT
    }};
}

#[doc(hidden)]
pub const fn joined_length(parts: &[&str], separator: &str) -> usize {
    let (mut length, mut index) = (0, 0);
    while index < parts.len() {
        length += parts[index].len() + if index == 0 { 0 } else { separator.len() };
        index += 1;
    }
    length
}

#[doc(hidden)]
pub const fn joined_bytes<const LENGTH: usize>(parts: &[&str], separator: &str) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let (mut end, mut index) = (0, 0);
    while index < parts.len() {
        if index > 0 {
            end = append(&mut bytes, end, separator);
        }
        end = append(&mut bytes, end, parts[index]);
        index += 1;
    }
    bytes
}

const fn append(bytes: &mut [u8], mut end: usize, text: &str) -> usize {
    let text = text.as_bytes();
    let mut index = 0;
    while index < text.len() {
        bytes[end] = text[index];
        (end, index) = (end + 1, index + 1);
    }
    end
}
