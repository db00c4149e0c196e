//! The variables of mail templates: `{{appName}}` and its seven siblings, in one pass over the template.
//!
//! Values are escaped as they are put in and never looked at again, so that no value can bring in markup or a further
//! variable. The time is linear in what comes out, and what comes out is bounded.

use std::fmt::Write as _;

use web::Escaped;

/// Every variable there is.
pub const VARIABLES: [&str; 8] =
    ["appName", "appLogo", "appUrl", "emailTitle", "emailBody", "ctaTitle", "ctaUrl", "currentYear"];

/// A rendered mail is no larger than this: a template may name a long value very often.
pub const MAX_RENDERED: usize = 2 * 1024 * 1024;

/// No variable is longer; beyond it `{{` is just two braces.
const LONGEST: usize = 64;

/// What the variables stand for. Everything is text, except the body, which is HTML that was made here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values<'a> {
    pub app_name: &'a str,
    pub app_logo: &'a str,
    pub app_url: &'a str,
    pub email_title: &'a str,
    pub email_body: &'a str,
    pub cta_title: &'a str,
    pub cta_url: &'a str,
    pub current_year: &'a str,
}

enum Value<'a> {
    Text(&'a str),
    Html(&'a str),
}

impl<'a> Values<'a> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        Some(match name {
            "appName" => Value::Text(self.app_name),
            "appLogo" => Value::Text(self.app_logo),
            "appUrl" => Value::Text(self.app_url),
            "emailTitle" => Value::Text(self.email_title),
            "emailBody" => Value::Html(self.email_body),
            "ctaTitle" => Value::Text(self.cta_title),
            "ctaUrl" => Value::Text(self.cta_url),
            "currentYear" => Value::Text(self.current_year),
            _ => return None,
        })
    }
}

/// What becomes of a variable that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It is left out: people do not want to see it.
    Empty,
    /// It stays as it is: whoever tries the template does.
    Visible,
}

/// The template with its variables replaced; `None` when that would be larger than [`MAX_RENDERED`].
pub fn render(template: &str, values: &Values<'_>, unknown: Unknown) -> Option<String> {
    let mut rendered = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find("{{") {
        let (before, from_braces) = rest.split_at(at);
        rendered.push_str(before);
        let Some((name, length)) = variable(from_braces) else {
            // One brace only: `{{{name}}` is a brace and a variable.
            rendered.push('{');
            rest = &from_braces[1..];
            continue;
        };
        match values.get(name) {
            Some(Value::Text(text)) => write!(rendered, "{}", Escaped(text)).expect("a String takes any text"),
            Some(Value::Html(html)) => rendered.push_str(html),
            None if unknown == Unknown::Visible => rendered.push_str(&from_braces[..length]),
            None => {}
        }
        if rendered.len() > MAX_RENDERED {
            return None;
        }
        rest = &from_braces[length..];
    }
    rendered.push_str(rest);
    (rendered.len() <= MAX_RENDERED).then_some(rendered)
}

/// The name in `{{name}}` or `{{ name }}` at the start of `text`, and how long the whole is.
fn variable(text: &str) -> Option<(&str, usize)> {
    // Looks no further than a variable can reach, so that a text of braces alone is not searched over and over.
    let reach = &text[..text.floor_char_boundary(LONGEST)];
    let inside = reach.strip_prefix("{{")?;
    let end = inside.find("}}")?;
    let name = inside[..end].trim_matches(' ');
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some((name, end + 4))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALUES: Values<'static> = Values {
        app_name: "R&D",
        app_logo: "https://a.example/l.png?x=1&y=2",
        app_url: "https://a.example",
        email_title: "<b>{{ctaUrl}}</b>",
        email_body: "<p>Hello</p>",
        cta_title: "Go \"now\"",
        cta_url: "https://a.example/?a='1'",
        current_year: "2026",
    };

    fn rendered(template: &str) -> String {
        render(template, &VALUES, Unknown::Empty).unwrap()
    }

    #[test]
    fn values_are_escaped_and_not_looked_at_again() {
        assert_eq!(rendered("{{appName}} {{ currentYear }}"), "R&amp;D 2026");
        assert_eq!(rendered("{{emailTitle}}"), "&lt;b&gt;{{ctaUrl}}&lt;/b&gt;");
        assert_eq!(rendered("<a href=\"{{ctaUrl}}\">"), "<a href=\"https://a.example/?a=&#39;1&#39;\">");
        assert_eq!(rendered("{{emailBody}}"), "<p>Hello</p>");
    }

    #[test]
    fn unknown_variables_vanish_or_stay() {
        assert_eq!(rendered("a{{nothing}}b"), "ab");
        assert_eq!(render("a{{nothing}}b", &VALUES, Unknown::Visible).unwrap(), "a{{nothing}}b");
    }

    #[test]
    fn what_is_no_variable_stands_for_itself() {
        for plain in
            ["{{", "{{}}", "{{ }}", "{ {appName} }", "{{app Name}}", "{{#if x}}", "{{1}}", "a{{b", "}}", "{{é}}"]
        {
            assert_eq!(rendered(plain), plain);
        }
        assert_eq!(rendered("{{{currentYear}}}"), "{2026}");
        assert_eq!(rendered("{{{{currentYear"), "{{{{currentYear");
    }

    #[test]
    fn a_template_cannot_blow_a_mail_up() {
        let body = "x".repeat(10_000);
        let values = Values { email_body: &body, ..VALUES };
        assert_eq!(render(&"{{emailBody}}".repeat(10_000), &values, Unknown::Empty), None);
    }

    /// Quadratic time would take minutes here.
    #[test]
    fn braces_alone_are_not_searched_over_and_over() {
        let braces = "{".repeat(1_000_000);
        assert_eq!(rendered(&braces), braces);
        let opened = "{{a".repeat(300_000);
        assert_eq!(rendered(&opened), opened);
    }

    proptest! {
        #[test]
        fn no_value_brings_in_markup(value in any::<String>(), template in "[a-z {}]{0,40}") {
            let values = Values { app_name: &value, cta_title: &value, email_title: &value, ..Values::default() };
            let template = format!("{template}{{{{appName}}}}{template}{{{{ctaTitle}}}}{template}{{{{emailTitle}}}}");
            let html = render(&template, &values, Unknown::Visible).unwrap();
            prop_assert!(!html.contains(['<', '>', '"', '\'']));
        }

        #[test]
        fn anything_renders(template in any::<String>()) {
            prop_assert!(render(&template, &VALUES, Unknown::Empty).is_some());
            prop_assert!(render(&template, &VALUES, Unknown::Visible).is_some());
        }

        #[test]
        fn a_template_without_variables_is_itself(template in "[^{]*") {
            prop_assert_eq!(rendered(&template), template);
        }
    }
}
