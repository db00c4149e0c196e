//! The built-in looks of mails: tables and inline style, which is what mail programs understand, and a dark variant for
//! those that ask for it.

use crate::apps::Profile;

const BASE: &str = include_str!("base.html");
const HEADER: &str = "<!-- header -->";
const FOOTER: &str = "<!-- footer -->";

/// Title, body and button: what every template of an occasion is until an app writes its own.
pub(crate) const WITH_BUTTON: &str = include_str!("with_button.html");
/// The same for a mail in which there is nothing to click.
pub(super) const WITHOUT_BUTTON: &str = include_str!("without_button.html");

pub(super) const PARAGRAPH: &str = "margin:0 0 16px;color:#1d2327;font-size:16px;line-height:25px;";
pub(super) const QUIET: &str = "margin:16px 0 0;color:#5c666d;font-size:13px;line-height:20px;";

/// The layout around all mails, for an app with or without a logo and a page to link to.
pub(crate) fn base(profile: &Profile) -> String {
    let header = match profile.logo {
        Some(_) => {
            "<img src=\"{{appLogo}}\" alt=\"{{appName}}\" height=\"40\" class=\"ink\" \
             style=\"display:block;height:40px;max-width:240px;border:0;color:#1d2327;font-size:18px;font-weight:600;\">"
        }
        None => {
            "<span class=\"ink\" style=\"color:#1d2327;font-size:18px;line-height:24px;font-weight:600;\">{{appName}}</span>"
        }
    };
    let footer = match app_url(profile) {
        Some(_) => {
            "&copy; {{currentYear}} <a href=\"{{appUrl}}\" class=\"quiet\" \
             style=\"color:#5c666d;text-decoration:underline;\">{{appName}}</a>"
        }
        None => "&copy; {{currentYear}} {{appName}}",
    };
    BASE.replacen(HEADER, header, 1).replacen(FOOTER, footer, 1)
}

/// Where an app's name leads.
pub(super) fn app_url(profile: &Profile) -> Option<&str> {
    profile.ui_url.as_deref().or(profile.website_url.as_deref())
}

/// Such a template is the whole mail; anything else stands inside the layout.
pub(super) fn is_whole_document(html: &str) -> bool {
    // Where a document starts, it starts: within the first characters, behind nothing but space and comments.
    let start = &html.as_bytes()[..html.len().min(1024)];
    [b"<!doctype".as_slice(), b"<html".as_slice()]
        .iter()
        .any(|mark| start.windows(mark.len()).any(|window| window.eq_ignore_ascii_case(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_fits_what_the_app_has() {
        let bare = base(&Profile::default());
        assert!(!bare.contains("{{appLogo}}") && !bare.contains("{{appUrl}}"));
        let url = Some("https://a.example".to_owned());
        let full = base(&Profile { logo: url.clone(), website_url: url, ..Profile::default() });
        assert!(full.contains("{{appLogo}}") && full.contains("{{appUrl}}"));
        assert!(!full.contains(HEADER) && !full.contains(FOOTER));
    }

    #[test]
    fn a_document_is_told_from_a_fragment() {
        assert!(is_whole_document("\n<!-- mine -->\n<!DOCTYPE html><html>"));
        assert!(is_whole_document("<HTML><body>"));
        assert!(!is_whole_document("<p>Write &lt;html&gt; by hand</p>"));
    }
}
