//! Text on its way into HTML.

use std::fmt::{Display, Formatter, Result, Write as _};

/// Text that may hold anything, written so that it stands for itself in an element or in a quoted attribute.
pub struct Escaped<'a>(pub &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Escaped;

    #[test]
    fn nothing_that_means_something_to_a_browser_is_left() {
        let text = r#"<a href="x" title='y'>R&D</a>"#;
        let written = "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;R&amp;D&lt;/a&gt;";
        assert_eq!(Escaped(text).to_string(), written);
    }
}
