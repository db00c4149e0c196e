//! What an e-mail address looks like to us: an unquoted local part and a host name, as everybody writes them.

/// [`is_address`] as a pattern for the documentation; everything that fits it is an address.
pub const ADDRESS: &str = "^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,30}(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,10}){0,3}\
                           @([A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?\\.){0,4}[A-Za-z]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?$";

const MAX_LOCAL: usize = 64;
const MAX_ADDRESS: usize = 254;

/// Whether mail can be sent to, or in the name of, this address. Never true of a text with spaces, line breaks or a
/// name in front of the address, so it is safe in a header.
pub fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    text.len() <= MAX_ADDRESS && is_local_part(local) && is_domain(domain)
}

fn is_local_part(local: &str) -> bool {
    let atom = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&b))
    };
    local.len() <= MAX_LOCAL && local.split('.').all(atom)
}

/// A host name whose last label begins with a letter: not a bare address of a machine.
fn is_domain(domain: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = domain.rsplit('.').next().unwrap_or_default();
    domain.split('.').all(label) && last.starts_with(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn addresses_are_as_people_write_them() {
        for good in ["ada@example.com", "a.b+tag@mail.example.co.uk", "o'neil@example.com", "me@localhost", "A@B.c"] {
            assert!(is_address(good), "{good}");
        }
        let bad = [
            "",
            "ada",
            "@example.com",
            "ada@",
            "a b@example.com",
            "a..b@example.com",
            ".a@example.com",
            "a.@example.com",
            "ada@example..com",
            "ada@-x.com",
            "ada@127.0.0.1",
            "Ada <ada@example.com>",
            "a@b@example.com\n",
            "a@example.com\r\nBcc: x@example.com",
            "\"a\"@example.com",
            "ä@example.com",
            "a@exämple.com",
            "a,b@example.com",
        ];
        for bad in bad {
            assert!(!is_address(bad), "{bad}");
        }
        assert!(!is_address(&format!("{}@example.com", "a".repeat(65))));
    }
}
