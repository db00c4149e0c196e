//! Forms: what changes something is a button that posts, never a link. Every field has a label, and a field's error is
//! tied to it, so that a screen reader says both.

use std::fmt::{Display, Formatter, Result};

use crate::Escaped;

/// What a field takes, which also tells browsers and password managers what to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Text,
    Email,
    /// The email address as the name of an account.
    Username,
    Password,
    NewPassword,
    GivenName,
    FamilyName,
    Organization,
    Phone,
    /// A web address.
    Url,
    /// A code from a phone or an authenticator app.
    OneTimeCode,
}

impl FieldKind {
    /// `type`, `autocomplete` and what else the kind brings.
    const fn attributes(self) -> &'static str {
        match self {
            Self::Text => "type=\"text\" autocomplete=\"off\" autocapitalize=\"none\" spellcheck=\"false\"",
            Self::Email => "type=\"email\" autocomplete=\"email\" spellcheck=\"false\"",
            Self::Username => "type=\"email\" autocomplete=\"username\" spellcheck=\"false\"",
            Self::Password => "type=\"password\" autocomplete=\"current-password\"",
            Self::NewPassword => "type=\"password\" autocomplete=\"new-password\" minlength=\"8\"",
            Self::GivenName => "type=\"text\" autocomplete=\"given-name\"",
            Self::FamilyName => "type=\"text\" autocomplete=\"family-name\"",
            Self::Organization => "type=\"text\" autocomplete=\"organization\"",
            Self::Phone => "type=\"tel\" autocomplete=\"tel\"",
            Self::Url => "type=\"url\" autocomplete=\"off\" spellcheck=\"false\"",
            Self::OneTimeCode => {
                "type=\"text\" inputmode=\"numeric\" autocomplete=\"one-time-code\" spellcheck=\"false\""
            }
        }
    }
}

/// One labelled input.
#[derive(Clone, Debug)]
pub struct Field {
    kind: FieldKind,
    name: &'static str,
    label: String,
    value: String,
    hint: Option<String>,
    error: Option<String>,
    optional: bool,
    focused: bool,
    fixed: bool,
}

impl Field {
    pub fn new(kind: FieldKind, name: &'static str, label: &str) -> Self {
        Self {
            kind,
            name,
            label: label.to_owned(),
            value: String::new(),
            hint: None,
            error: None,
            optional: false,
            focused: false,
            fixed: false,
        }
    }

    /// What stands in it at first. A password never comes back to its page.
    #[must_use]
    pub fn value(self, value: &str) -> Self {
        Self { value: value.to_owned(), ..self }
    }

    #[must_use]
    pub fn hint(self, hint: &str) -> Self {
        Self { hint: Some(hint.to_owned()), ..self }
    }

    /// What was wrong with it.
    #[must_use]
    pub fn error(self, error: Option<&str>) -> Self {
        Self { error: error.map(str::to_owned), ..self }
    }

    #[must_use]
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Where typing begins.
    #[must_use]
    pub fn focused(self) -> Self {
        Self { focused: true, ..self }
    }

    /// Shown and sent, not to be changed.
    #[must_use]
    pub fn fixed(self) -> Self {
        Self { fixed: true, ..self }
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { kind, name, label, value, .. } = self;
        let (attributes, label, value) = (kind.attributes(), Escaped(label), Escaped(value));
        write!(f, "<div class=\"field\">\n<label for=\"{name}\">{label}</label>\n")?;
        write!(f, "<input id=\"{name}\" name=\"{name}\" {attributes} value=\"{value}\"")?;
        for (is_set, attribute) in
            [(!self.optional, " required"), (self.focused, " autofocus"), (self.fixed, " readonly")]
        {
            f.write_str(if is_set { attribute } else { "" })?;
        }
        let described = [self.hint.as_ref().map(|_| "hint"), self.error.as_ref().map(|_| "error")];
        let ids: Vec<String> = described.into_iter().flatten().map(|what| format!("{name}-{what}")).collect();
        if !ids.is_empty() {
            write!(f, " aria-describedby=\"{}\"", ids.join(" "))?;
        }
        f.write_str(if self.error.is_some() { " aria-invalid=\"true\">\n" } else { ">\n" })?;
        if let Some(hint) = &self.hint {
            writeln!(f, "<p class=\"hint\" id=\"{name}-hint\">{}</p>", Escaped(hint))?;
        }
        if let Some(error) = &self.error {
            writeln!(f, "<p class=\"error\" id=\"{name}-error\">{}</p>", Escaped(error))?;
        }
        f.write_str("</div>\n")
    }
}

/// A labelled list that one entry is chosen from.
#[derive(Clone, Debug)]
pub struct Select {
    name: &'static str,
    label: String,
    /// What is sent, and what is read.
    options: Vec<(String, String)>,
    chosen: String,
}

impl Select {
    /// `chosen` is what is sent unless something else is chosen.
    pub fn new(name: &'static str, label: &str, chosen: &str) -> Self {
        Self { name, label: label.to_owned(), options: Vec::new(), chosen: chosen.to_owned() }
    }

    #[must_use]
    pub fn option(mut self, value: &str, label: &str) -> Self {
        self.options.push((value.to_owned(), label.to_owned()));
        self
    }
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (name, label) = (self.name, Escaped(&self.label));
        write!(f, "<div class=\"field\">\n<label for=\"{name}\">{label}</label>\n")?;
        writeln!(f, "<select id=\"{name}\" name=\"{name}\">")?;
        for (value, label) in &self.options {
            let selected = if *value == self.chosen { " selected" } else { "" };
            writeln!(f, "<option value=\"{}\"{selected}>{}</option>", Escaped(value), Escaped(label))?;
        }
        f.write_str("</select>\n</div>\n")
    }
}

/// A button that sends its own value: one of several to choose from.
#[derive(Clone, Debug)]
struct Choice {
    name: &'static str,
    value: String,
    label: String,
}

/// A form with its fields and either one button or a list to choose from.
#[derive(Clone, Debug)]
pub struct PostForm {
    action: String,
    id: Option<&'static str>,
    hidden: Vec<(&'static str, String)>,
    fields: Vec<Field>,
    selects: Vec<Select>,
    choices: Vec<Choice>,
    button: String,
    is_quiet: bool,
    /// What a script is to know.
    data: Vec<(&'static str, String)>,
    /// Whether it is of no use until a script shows it.
    needs_script: bool,
}

impl PostForm {
    /// `action` is where it posts to, relative to the page.
    pub fn new(action: &str) -> Self {
        Self {
            action: action.to_owned(),
            id: None,
            hidden: Vec::new(),
            fields: Vec::new(),
            selects: Vec::new(),
            choices: Vec::new(),
            button: "Continue".into(),
            is_quiet: false,
            data: Vec::new(),
            needs_script: false,
        }
    }

    /// For a script that works with it.
    #[must_use]
    pub fn id(self, id: &'static str) -> Self {
        Self { id: Some(id), ..self }
    }

    #[must_use]
    pub fn hidden(mut self, name: &'static str, value: &str) -> Self {
        self.hidden.push((name, value.to_owned()));
        self
    }

    #[must_use]
    pub fn field(mut self, field: Field) -> Self {
        self.fields.push(field);
        self
    }

    /// Stands behind the fields.
    #[must_use]
    pub fn select(mut self, select: Select) -> Self {
        self.selects.push(select);
        self
    }

    /// A button of its own instead of the usual one.
    #[must_use]
    pub fn choice(mut self, name: &'static str, value: &str, label: &str) -> Self {
        self.choices.push(Choice { name, value: value.to_owned(), label: label.to_owned() });
        self
    }

    #[must_use]
    pub fn button(self, label: &str) -> Self {
        Self { button: label.to_owned(), ..self }
    }

    /// An alternative to what the page is about.
    #[must_use]
    pub fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    /// An attribute `data-{name}` for a script that works with the form.
    #[must_use]
    pub fn data(mut self, name: &'static str, value: &str) -> Self {
        self.data.push((name, value.to_owned()));
        self
    }

    /// Hidden until a script shows it.
    #[must_use]
    pub fn needs_script(self) -> Self {
        Self { needs_script: true, ..self }
    }
}

impl Display for PostForm {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "<form method=\"post\" action=\"{}\"", Escaped(&self.action))?;
        if let Some(id) = self.id {
            write!(f, " id=\"{}\"", Escaped(id))?;
        }
        for (name, value) in &self.data {
            write!(f, " data-{name}=\"{}\"", Escaped(value))?;
        }
        f.write_str(if self.needs_script { " hidden>\n" } else { ">\n" })?;
        for (name, value) in &self.hidden {
            writeln!(f, "<input type=\"hidden\" name=\"{}\" value=\"{}\">", Escaped(name), Escaped(value))?;
        }
        for field in &self.fields {
            write!(f, "{field}")?;
        }
        for select in &self.selects {
            write!(f, "{select}")?;
        }
        for Choice { name, value, label } in &self.choices {
            let (name, value, label) = (Escaped(name), Escaped(value), Escaped(label));
            writeln!(f, "<button class=\"choice\" type=\"submit\" name=\"{name}\" value=\"{value}\">{label}</button>")?;
        }
        if self.choices.is_empty() {
            let class = if self.is_quiet { " class=\"quiet\"" } else { "" };
            writeln!(f, "<button type=\"submit\"{class}>{}</button>", Escaped(&self.button))?;
        }
        f.write_str("</form>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_tied_to_its_label_its_hint_and_its_error() {
        let field =
            Field::new(FieldKind::NewPassword, "password", "Password").hint("8 or more").error(Some("Too <short>"));
        let html = field.to_string();
        assert!(html.contains("<label for=\"password\">Password</label>"));
        assert!(html.contains("id=\"password\" name=\"password\" type=\"password\" autocomplete=\"new-password\""));
        assert!(html.contains("aria-describedby=\"password-hint password-error\" aria-invalid=\"true\""));
        assert!(html.contains("id=\"password-error\">Too &lt;short&gt;</p>"));
    }

    #[test]
    fn a_form_for_a_script_is_hidden_and_tells_it_what_to_say() {
        let html = PostForm::new("passkey").data("failed", "No \"luck\"").needs_script().to_string();
        assert!(
            html.starts_with("<form method=\"post\" action=\"passkey\" data-failed=\"No &quot;luck&quot;\" hidden>")
        );
    }

    #[test]
    fn a_list_shows_what_is_chosen() {
        let select = Select::new("role", "Role", "B").option("A", "<A>").option("B", "R&D");
        let html = PostForm::new("members").select(select).to_string();
        assert!(html.contains("<label for=\"role\">Role</label>\n<select id=\"role\" name=\"role\">"));
        assert!(html.contains("<option value=\"A\">&lt;A&gt;</option>\n<option value=\"B\" selected>R&amp;D</option>"));
    }

    #[test]
    fn choices_take_the_place_of_the_button() {
        let html = PostForm::new("workspace").choice("member", "m_1", "R&D").to_string();
        assert!(html.contains("name=\"member\" value=\"m_1\">R&amp;D</button>"));
        assert_eq!(html.matches("<button").count(), 1);
    }
}
