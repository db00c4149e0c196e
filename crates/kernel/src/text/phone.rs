//! Phone numbers as people type them.

/// The number in its one international form.
pub fn e164(number: &str) -> Option<String> {
    // No number has more; the parser need not see what cannot be one.
    if number.len() > 40 || !number.trim_start().starts_with('+') {
        return None;
    }
    let parsed = phonenumber::parse(None, number).ok().filter(phonenumber::is_valid)?;
    Some(parsed.format().mode(phonenumber::Mode::E164).to_string())
}

#[cfg(test)]
mod tests {
    use super::e164;

    #[test]
    fn numbers_take_their_one_form_and_junk_is_refused() {
        assert_eq!(e164("+49 170 1234567").as_deref(), Some("+491701234567"));
        assert_eq!(e164(" +1 (202) 555-0143").as_deref(), Some("+12025550143"));
        for junk in
            ["", "+", "0170 1234567", "+4", "+0000000000000", "call me", "+49170123456789012345", "+49 170 12ab"]
        {
            assert_eq!(e164(junk), None, "{junk}");
        }
    }
}
