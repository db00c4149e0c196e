//! A form that posts: what changes something is a button, never a link.

use std::fmt::{Display, Formatter, Result};

use crate::Escaped;

/// A form with its hidden fields and one button.
#[derive(Clone, Debug)]
pub struct PostForm {
    action: String,
    hidden: Vec<(&'static str, String)>,
    button: String,
}

impl PostForm {
    /// `action` is where it posts to, relative to the page.
    pub fn new(action: &str) -> Self {
        Self { action: action.to_owned(), hidden: Vec::new(), button: "Continue".into() }
    }

    #[must_use]
    pub fn hidden(mut self, name: &'static str, value: &str) -> Self {
        self.hidden.push((name, value.to_owned()));
        self
    }

    #[must_use]
    pub fn button(self, label: &str) -> Self {
        Self { button: label.to_owned(), ..self }
    }
}

impl Display for PostForm {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "<form method=\"post\" action=\"{}\">", Escaped(&self.action))?;
        for (name, value) in &self.hidden {
            writeln!(f, "<input type=\"hidden\" name=\"{}\" value=\"{}\">", Escaped(name), Escaped(value))?;
        }
        writeln!(f, "<button type=\"submit\">{}</button>\n</form>", Escaped(&self.button))
    }
}
