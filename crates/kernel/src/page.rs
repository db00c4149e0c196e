//! Which part of a list is wanted.

use schemars::JsonSchema;
use serde::Deserialize;

/// Which part of a list to answer. Without them a list is answered whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Page {
    /// At most so many entries.
    #[schemars(range(min = 1, max = Page::MAX_LIMIT))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Leave out so many entries first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u32>,
}

impl Page {
    /// The whole list.
    pub const ALL: Self = Self { limit: None, offset: None };
    pub const MAX_LIMIT: u32 = 1_000;

    /// For SQL: the limit, where a huge number means none.
    pub fn limit_or_all(self) -> i64 {
        self.limit.map_or(i64::MAX, i64::from)
    }

    pub fn offset(self) -> i64 {
        self.offset.map_or(0, i64::from)
    }

    /// This part of a list that is in memory.
    pub fn of<T>(self, list: impl IntoIterator<Item = T>) -> Vec<T> {
        let places = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let limit = self.limit.map_or(usize::MAX, places);
        list.into_iter().skip(self.offset.map_or(0, places)).take(limit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_does_not_count_towards_the_limit() {
        let part = |limit, offset| Page { limit, offset }.of(1..=5);
        assert_eq!(part(Some(2), Some(1)), [2, 3]);
        assert_eq!(part(Some(2), None), [1, 2]);
        assert_eq!(part(None, Some(3)), [4, 5]);
        assert_eq!(part(Some(2), Some(9)), [0; 0]);
        assert_eq!(Page::ALL.of(1..=5), [1, 2, 3, 4, 5]);
    }
}
