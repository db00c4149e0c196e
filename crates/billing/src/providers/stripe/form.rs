//! The form encoding of the provider's API: `line_items[0][price]=price_1`. Pure.

use std::fmt::Display;

use url::form_urlencoded::Serializer;

/// A form in the order in which it was put together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiForm(Vec<(String, String)>);

impl ApiForm {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn set(mut self, name: &str, value: &(impl Display + ?Sized)) -> Self {
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// Left out when there is no value.
    #[must_use]
    pub fn set_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    /// Each member as `name[member]`.
    #[must_use]
    pub fn set_members<'a>(self, name: &str, members: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        members.into_iter().fold(self, |form, (member, value)| form.set(&format!("{name}[{member}]"), &value))
    }

    /// Each entry as `name[0]`, `name[1]`, ….
    #[must_use]
    pub fn set_list(self, name: &str, entries: &[String]) -> Self {
        entries.iter().enumerate().fold(self, |form, (place, entry)| form.set(&format!("{name}[{place}]"), entry))
    }

    pub fn encoded(&self) -> String {
        Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_stand_in_brackets() {
        let form = ApiForm::new()
            .set("mode", "subscription")
            .set("line_items[0][quantity]", &1)
            .set_some("customer_email", None)
            .set_members("metadata", [("tenantId", "tenant_1&x".to_owned())]);
        let expected = "mode=subscription&line_items%5B0%5D%5Bquantity%5D=1&metadata%5BtenantId%5D=tenant_1%26x";
        assert_eq!(form.encoded(), expected);
    }

    proptest! {
        #[test]
        fn whatever_goes_in_comes_out(pairs in prop::collection::vec((".{1,20}", ".{0,40}"), 0..8)) {
            let form = pairs.iter().fold(ApiForm::new(), |form, (name, value)| form.set(name, value));
            let read: Vec<(String, String)> =
                url::form_urlencoded::parse(form.encoded().as_bytes()).into_owned().collect();
            prop_assert_eq!(read, pairs);
        }
    }
}
