//! Choices that are stored by name, and that have the same names on the wire.

/// Declares an enum whose variants have a text each: `ALL`, `as_str`, `FromStr`, and columns of that type. With `wire` before
/// the visibility the same texts are its JSON and its schema.
///
/// ```ignore
/// text_enum! {
///     /// How often a price is due.
///     wire pub enum Interval {
///         Month = "month",
///         Year = "year",
///     }
/// }
/// ```
#[macro_export]
macro_rules! text_enum {
    (
        $(#[$attribute:meta])*
        wire $visibility:vis enum $name:ident { $($(#[$about:meta])* $variant:ident = $text:literal),+ $(,)? }
    ) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        $(#[$attribute])*
        $visibility enum $name { $($(#[$about])* #[serde(rename = $text)] $variant),+ }
        $crate::__text_enum! { $name { $($variant = $text),+ } }
    };
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident { $($(#[$about:meta])* $variant:ident = $text:literal),+ $(,)? }
    ) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $(#[$attribute])*
        $visibility enum $name { $($(#[$about])* $variant),+ }
        $crate::__text_enum! { $name { $($variant = $text),+ } }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __text_enum {
    ($name:ident { $($variant:ident = $text:literal),+ }) => {
        impl $name {
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::WrongType;

            fn from_str(text: &str) -> Result<Self, $crate::WrongType> {
                Self::ALL
                    .into_iter()
                    .find(|known| known.as_str() == text)
                    .ok_or_else(|| $crate::WrongType(format!("must be one of {}", [$($text),+].join(", "))))
            }
        }

        impl $crate::Column for $name {
            fn from_value(value: $crate::Value<'_>) -> Result<Self, $crate::WrongType> {
                $crate::parsed(value)
            }
        }

        impl $crate::ToArg for $name {
            fn to_arg(&self) -> $crate::Arg<'_> {
                $crate::Arg::Text(self.as_str().into())
            }
        }

        impl $crate::Cell for $name {
            const TYPE: $crate::ColumnType = $crate::ColumnType::Text;
        }
    };
}
