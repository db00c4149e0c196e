//! A mail written out: its texts in the app's words, as plain text and as HTML in the app's looks.

use std::fmt::Write as _;

use kernel::text::one_line;
use web::Escaped;

use super::{
    AppMail, TemplateName,
    layout::{self, PARAGRAPH, QUIET},
    variables::{Unknown, Values, render},
    words::COPY_LINK,
};
use crate::{App, branding::Translations};

/// Subjects are cut to this many characters.
const LONGEST_SUBJECT: usize = 200;
/// And names of workspaces in them to this many.
const LONGEST_QUOTED: usize = 40;

/// The templates that an app changed, as far as this mail needs them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) base: Option<String>,
    pub(crate) occasion: Option<String>,
}

/// A mail's texts with names filled in, in the app's language.
pub(crate) struct Letter {
    pub(crate) template: Option<TemplateName>,
    pub(crate) subject: String,
    title: String,
    paragraphs: Vec<String>,
    action: Option<(String, String)>,
    note: String,
    copy_link: String,
}

impl Letter {
    pub(crate) fn new(mail: &AppMail, app: &App, translations: &Translations) -> Self {
        let words = mail.words();
        let app_name = app.profile.name.as_str();
        let names = [("{appName}", app_name), ("{workspace}", mail.workspace()), ("{inviter}", mail.inviter())];
        // What a customer chose stands in quotes there, and is short: it is read before anything else is.
        let (workspace, inviter) = (quoted(mail.workspace()), quoted(mail.inviter()));
        let in_subject = [("{appName}", app_name), ("{workspace}", &*workspace), ("{inviter}", &*inviter)];
        let say = |text: &str| fill(translations.get(text), &names);
        Self {
            template: words.template,
            subject: header_line(&fill(translations.get(words.subject), &in_subject)),
            title: say(words.title),
            paragraphs: words.paragraphs.iter().map(|text| say(text)).collect(),
            action: words.action.zip(mail.link()).map(|(label, link)| (say(label), link.to_owned())),
            note: say(words.note),
            copy_link: say(COPY_LINK),
        }
    }

    pub(crate) fn text(&self, app: &App) -> String {
        let mut text = format!("{}\n\n", self.title);
        for paragraph in &self.paragraphs {
            text.push_str(paragraph);
            text.push_str("\n\n");
        }
        if let Some((label, link)) = &self.action {
            text.push_str(&format!("{label}:\n{link}\n\n"));
        }
        text.push_str(&format!("{}\n\n-- \n{}\n", self.note, app.profile.name));
        if let Some(url) = layout::app_url(&app.profile) {
            text.push_str(&format!("{url}\n"));
        }
        text
    }

    /// In the app's templates; in the built-in ones where the app's would make a mail of unreasonable size.
    pub(crate) fn html(&self, app: &App, overrides: &Overrides, year: &str, unknown: Unknown) -> String {
        self.html_with(app, overrides, year, unknown)
            .or_else(|| self.html_with(app, &Overrides::default(), year, unknown))
            .unwrap_or_default()
    }

    /// `None` when it would be too large.
    pub(crate) fn html_with(&self, app: &App, overrides: &Overrides, year: &str, unknown: Unknown) -> Option<String> {
        let body = self.body();
        let (cta_title, cta_url) = self.action.as_ref().map_or(("", ""), |(label, link)| (label, link));
        let values = Values {
            app_name: &app.profile.name,
            app_logo: app.profile.logo.as_deref().unwrap_or_default(),
            app_url: layout::app_url(&app.profile).unwrap_or_default(),
            email_title: &self.title,
            email_body: &body,
            cta_title,
            cta_url,
            current_year: year,
        };
        let built_in = if self.action.is_some() { layout::WITH_BUTTON } else { layout::WITHOUT_BUTTON };
        let occasion = render(overrides.occasion.as_deref().unwrap_or(built_in), &values, unknown)?;
        if layout::is_whole_document(&occasion) {
            return Some(occasion);
        }
        let inner = occasion + &self.footnotes();
        let default_base = layout::base(&app.profile);
        let base = overrides.base.as_deref().unwrap_or(&default_base);
        render(base, &Values { email_body: &inner, ..values }, unknown)
    }

    /// `{{emailBody}}`: paragraphs.
    fn body(&self) -> String {
        let mut html = String::new();
        for paragraph in &self.paragraphs {
            writeln!(html, "<p class=\"ink\" style=\"{PARAGRAPH}\">{}</p>", Escaped(paragraph)).expect(ANY_TEXT);
        }
        html
    }

    /// What stands below every mail in our layout, whoever wrote the part above: how long the link works, what to do
    /// if it is unexpected, and the address in full.
    fn footnotes(&self) -> String {
        let mut html = format!("\n<p class=\"quiet\" style=\"{QUIET}\">{}</p>\n", Escaped(&self.note));
        if let Some((_, link)) = &self.action {
            let (says, link) = (Escaped(&self.copy_link), Escaped(link));
            write!(
                html,
                "<p class=\"quiet\" style=\"{QUIET}\">{says}<br>\n<a href=\"{link}\" class=\"quiet\" \
                 style=\"color:#5c666d;word-break:break-all;\">{link}</a></p>\n"
            )
            .expect(ANY_TEXT);
        }
        html
    }
}

const ANY_TEXT: &str = "a String takes any text";

/// Replaces each name once, in one pass: what a name says is not looked at again.
fn fill(text: &str, names: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from_brace) = rest.split_at(at);
        filled.push_str(before);
        rest = match names.iter().find(|(name, _)| from_brace.starts_with(name)) {
            Some((name, value)) => {
                filled.push_str(value);
                &from_brace[name.len()..]
            }
            None => {
                filled.push('{');
                &from_brace[1..]
            }
        };
    }
    filled + rest
}

/// A name of a customer's choosing, for a subject: short, and plainly a name.
fn quoted(name: &str) -> String {
    if name.is_empty() {
        return String::new();
    }
    let plain: String = name.chars().map(|letter| if "“”„\"".contains(letter) { '\'' } else { letter }).collect();
    if plain.chars().count() <= LONGEST_QUOTED {
        return format!("“{plain}”");
    }
    let start: String = plain.chars().take(LONGEST_QUOTED - 1).collect();
    format!("“{}…”", start.trim_end())
}

/// For a header: one line, and not endless.
pub(crate) fn header_line(text: &str) -> String {
    one_line(text).chars().take(LONGEST_SUBJECT).collect()
}

#[cfg(test)]
mod tests {
    use kernel::{AppId, Timestamp};
    use proptest::prelude::*;

    use super::*;
    use crate::apps::Profile;

    fn app(name: &str) -> App {
        let profile = Profile { name: name.into(), ui_url: Some("https://app.example".into()), ..Profile::default() };
        App { id: AppId::from_u128(1), profile, created_at: Timestamp::from_micros(0), version: 1 }
    }

    fn invitation(workspace: &str) -> AppMail {
        AppMail::InviteNew { workspace: workspace.into(), link: "https://t.example/x?token=1&a=2".into() }
    }

    fn html(mail: &AppMail, overrides: &Overrides) -> String {
        let app = app("Tiny");
        Letter::new(mail, &app, &Translations::default()).html(&app, overrides, "2026", Unknown::Empty)
    }

    #[test]
    fn every_mail_has_a_subject_both_parts_and_no_empty_variable() {
        let app = app("Tiny");
        for mail in AppMail::samples() {
            let letter = Letter::new(&mail, &app, &Translations::default());
            let (html, text) = (letter.html(&app, &Overrides::default(), "2026", Unknown::Visible), letter.text(&app));
            for part in [&letter.subject, &html, &text] {
                assert!(!part.contains("{{") && !part.contains("{appName}") && !part.contains("{workspace}"), "{part}");
            }
            assert!(letter.subject.len() < 80 && text.contains("Tiny") && html.contains("</html>"), "{mail:?}");
            if let Some(link) = mail.link() {
                assert!(text.contains(link) && html.contains(&Escaped(link).to_string()), "{mail:?}");
            }
        }
    }

    #[test]
    fn texts_are_translated_one_by_one_with_their_names() {
        let map = [("Join {workspace}", "{workspace} wartet auf {appName}"), ("Accept invitation", "")];
        let translations = Translations::from_iter(map.map(|(from, to)| (from.to_owned(), to.to_owned())));
        let app = app("Tiny");
        let text = Letter::new(&invitation("Acme {appName}"), &app, &translations).text(&app);
        assert!(text.starts_with("Acme {appName} wartet auf Tiny\n"), "{text}");
        assert!(text.contains("Accept invitation"), "an empty translation is none: {text}");
    }

    #[test]
    fn an_override_stands_inside_the_layout_unless_it_is_a_whole_document() {
        let with = |content: &str| Overrides { base: None, occasion: Some(content.into()) };
        let wrapped = html(&invitation("Acme"), &with("<p>Hi! {{ctaUrl}} {{nope}}</p>"));
        assert!(
            wrapped.starts_with("<!doctype html>")
                && wrapped.contains("<p>Hi! https://t.example/x?token=1&amp;a=2 </p>")
        );
        assert_eq!(html(&invitation("Acme"), &with("<HTML>{{appName}}</HTML>")), "<HTML>Tiny</HTML>");
        let base = Overrides { base: Some("[{{emailBody}}]".into()), occasion: Some("x".into()) };
        assert!(html(&invitation("Acme"), &base).starts_with("[x\n<p"));
    }

    #[test]
    fn templates_that_would_blow_a_mail_up_give_way_to_the_built_in_ones() {
        let many = Overrides { base: Some("{{emailBody}}".repeat(30_000)), occasion: Some("{{emailBody}}".repeat(10)) };
        let html = html(&invitation("Acme"), &many);
        assert!(html.contains("Accept invitation") && html.len() < 20_000);
    }

    #[test]
    fn a_customers_name_is_short_and_quoted_in_a_subject() {
        let subject =
            |workspace: &str| Letter::new(&invitation(workspace), &app("Tiny"), &Translations::default()).subject;
        assert_eq!(subject("Acme"), "Join “Acme” on Tiny");
        assert_eq!(subject("A” now: “B\""), "Join “A' now: 'B'” on Tiny");
        let long = subject("Your invoice is overdue. Pay now at https://evil.example/pay to keep your data");
        assert_eq!(long, "Join “Your invoice is overdue. Pay now at htt…” on Tiny");
    }

    #[test]
    fn a_subject_is_one_line() {
        let app = app("A\r\nBcc: x@example.com");
        let letter = Letter::new(&invitation(&"é".repeat(500)), &app, &Translations::default());
        assert!(!letter.subject.contains(['\r', '\n']) && letter.subject.chars().count() <= LONGEST_SUBJECT);
    }

    proptest! {
        #[test]
        fn no_name_brings_markup_into_a_mail(name in any::<String>(), workspace in any::<String>()) {
            let app = app(&name);
            let letter = Letter::new(&invitation(&workspace), &app, &Translations::default());
            let plain = Letter::new(&invitation("x"), &self::app("y"), &Translations::default());
            let tags = |letter: &Letter, app: &App| {
                let html = letter.html(app, &Overrides::default(), "2026", Unknown::Empty);
                html.bytes().filter(|byte| *byte == b'<' || *byte == b'"').count()
            };
            prop_assert_eq!(tags(&letter, &app), tags(&plain, &self::app("y")));
        }
    }
}
