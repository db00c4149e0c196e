//! Which passwords are refused when one is chosen.

use kernel::Problems;
use zxcvbn::{Score, zxcvbn};

pub const MIN_LENGTH: usize = 8;
/// In bytes. Longer ones would only cost time.
pub const MAX_LENGTH: usize = 512;

/// The estimate is about patterns, which a password's first part shows as well as the whole of it.
const ESTIMATED_CHARS: usize = 100;

/// Adds a problem with `field` when the password is too short or easy to guess, also from what is known about the
/// person (`about`: address, names, the app's name).
pub fn check_quality(problems: &mut Problems, field: &str, password: &str, about: &[&str]) {
    if password.chars().count() < MIN_LENGTH {
        problems.add(field, "must have at least 8 characters");
    } else if password.len() > MAX_LENGTH {
        problems.add(field, format!("must not be longer than {MAX_LENGTH} bytes"));
    } else if estimate(password, about) < Score::Two {
        problems.add(field, "is too easy to guess; add another word or two");
    }
}

fn estimate(password: &str, about: &[&str]) -> Score {
    let end = password.char_indices().nth(ESTIMATED_CHARS).map_or(password.len(), |(end, _)| end);
    zxcvbn(&password[..end], about).score()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(password: &str, about: &[&str]) -> Option<String> {
        let mut problems = Problems::new();
        check_quality(&mut problems, "password", password, about);
        problems.finish().err().map(|error| error.public().to_owned())
    }

    #[test]
    fn short_common_and_personal_passwords_are_refused() {
        for weak in ["", "x7#Kq", "password", "password1", "qwertyuiop", "aaaaaaaaaaaa", "12345678"] {
            assert!(refusal(weak, &[]).is_some(), "{weak}");
        }
        assert!(refusal(&"x7#Kq9".repeat(100), &[]).is_some());
        assert!(refusal("hildegard1", &["hildegard@example.com", "Hildegard"]).is_some());
    }

    #[test]
    fn reasonable_passwords_pass() {
        for good in ["violet harbour lamp", "x7#Kq9!mZ", "Übergrößenträger", &"lamp harbour violet ".repeat(20)] {
            assert_eq!(refusal(good, &["ada@example.com"]), None, "{good}");
        }
    }
}
