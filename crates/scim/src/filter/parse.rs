//! The grammar of filters and patch paths, read by descent. Bounded: a filter has at most so many bytes, comparisons and levels.

use kernel::{Code, Error, Result};
use serde_json::Value;

use super::{AttributePath, Filter, Operator, PatchPath, invalid};

/// In bytes; what fits into a query.
const LONGEST: usize = 8 * 1024;
/// Parentheses, `not` and brackets within each other.
const DEEPEST: usize = 16;
/// Comparisons.
const MOST: usize = 200;

/// Reads a filter.
pub fn parse(text: &str) -> Result<Filter> {
    let mut reader = Reader::new(text)?;
    let filter = reader.any(0)?;
    reader.spaces();
    if reader.rest.is_empty() { Ok(filter) } else { Err(reader.unexpected("`and`, `or` or its end")) }
}

/// Reads the path of a patch operation.
pub fn parse_path(text: &str) -> Result<PatchPath> {
    path(text).map_err(|error| {
        let problem = error.public().trim_start_matches("The filter ").to_owned();
        Error::new(Code::InvalidPath, format!("The path {problem}"))
    })
}

fn path(text: &str) -> Result<PatchPath> {
    let mut reader = Reader::new(text.trim())?;
    let AttributePath { schema, name, sub } = reader.attribute()?;
    let path = if sub.is_none() && reader.takes('[') {
        let filter = Some(reader.entry(0)?);
        let sub = if reader.takes('.') { Some(reader.name()?) } else { None };
        PatchPath { schema, name, filter, sub }
    } else {
        PatchPath { schema, name, filter: None, sub }
    };
    if reader.rest.is_empty() { Ok(path) } else { Err(reader.unexpected("its end")) }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    comparisons: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Result<Self> {
        match text.len() <= LONGEST {
            true => Ok(Self { text, rest: text, comparisons: 0 }),
            false => Err(invalid(format_args!("is longer than {LONGEST} bytes"))),
        }
    }

    /// `a or b or c`.
    fn any(&mut self, depth: usize) -> Result<Filter> {
        let mut parts = vec![self.all(depth)?];
        while self.takes_word("or") {
            parts.push(self.all(depth)?);
        }
        Ok(one_or(parts, Filter::Any))
    }

    /// `a and b and c`.
    fn all(&mut self, depth: usize) -> Result<Filter> {
        let mut parts = vec![self.term(depth)?];
        while self.takes_word("and") {
            parts.push(self.term(depth)?);
        }
        Ok(one_or(parts, Filter::All))
    }

    fn term(&mut self, depth: usize) -> Result<Filter> {
        if depth == DEEPEST {
            return Err(invalid(format_args!("is nested deeper than {DEEPEST} levels")));
        }
        self.spaces();
        if self.takes('(') {
            return self.closed(depth);
        }
        let before = self.rest;
        if self.takes_word("not") {
            self.spaces();
            if self.takes('(') {
                return Ok(Filter::Not(Box::new(self.closed(depth)?)));
            }
            // An attribute may be called like this.
            self.rest = before;
        }
        self.comparison(depth)
    }

    fn closed(&mut self, depth: usize) -> Result<Filter> {
        let inner = self.any(depth + 1)?;
        self.spaces();
        if self.takes(')') { Ok(inner) } else { Err(self.unexpected("`)`")) }
    }

    fn comparison(&mut self, depth: usize) -> Result<Filter> {
        self.comparisons += 1;
        if self.comparisons > MOST {
            return Err(invalid(format_args!("has more than {MOST} comparisons")));
        }
        let path = self.attribute()?;
        if path.sub.is_none() && self.takes('[') {
            let filter = self.entry(depth)?;
            // `emails[type eq "work"].value eq "…"` is not in the grammar, and sent by a common directory.
            let filter = match self.takes('.') {
                true => {
                    let path = AttributePath { schema: None, name: self.name()?, sub: None };
                    Filter::All(vec![filter, self.compared(path)?])
                }
                false => filter,
            };
            return Ok(Filter::Entry { path, filter: Box::new(filter) });
        }
        self.compared(path)
    }

    /// What follows an attribute.
    fn compared(&mut self, path: AttributePath) -> Result<Filter> {
        if self.takes_word("pr") {
            return Ok(Filter::Present(path));
        }
        let known = Operator::ALL.iter().find(|(name, _)| self.takes_word(name));
        let Some((_, operator)) = known else {
            return Err(self.unexpected("an operator (eq, ne, co, sw, ew, gt, ge, lt, le or pr)"));
        };
        self.spaces();
        Ok(Filter::Compare { path, operator: *operator, value: self.value()? })
    }

    /// What stands between brackets, which do not nest.
    fn entry(&mut self, depth: usize) -> Result<Filter> {
        let filter = self.any(depth + 1)?;
        self.spaces();
        match self.takes(']') {
            true if has_entry(&filter) => Err(invalid("has brackets within brackets")),
            true => Ok(filter),
            false => Err(self.unexpected("`]`")),
        }
    }

    fn attribute(&mut self) -> Result<AttributePath> {
        let schema = self.schema();
        let name = self.name()?;
        let sub = if self.takes('.') { Some(self.name()?) } else { None };
        Ok(AttributePath { schema, name, sub })
    }

    /// `urn:…:` before an attribute's name, which has no colon itself.
    fn schema(&mut self) -> Option<String> {
        let is_urn = self.rest.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("urn:"));
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || ":._-".contains(c)));
        let colon = self.rest[..end.unwrap_or(self.rest.len())].rfind(':').filter(|_| is_urn)?;
        let (schema, rest) = (&self.rest[..colon], &self.rest[colon + 1..]);
        self.rest = rest;
        Some(schema.to_owned())
    }

    /// `ATTRNAME`: a letter, then letters, digits, `-` and `_`. `$ref` is the one with another beginning.
    fn name(&mut self) -> Result<String> {
        let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let start = usize::from(self.rest.starts_with('$'));
        let length = start + self.rest[start..].find(|c: char| !is_inner(c)).unwrap_or(self.rest.len() - start);
        let name = &self.rest[..length];
        if !name[start..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(self.unexpected("the name of an attribute"));
        }
        self.rest = &self.rest[length..];
        Ok(name.to_owned())
    }

    /// JSON without lists and objects.
    fn value(&mut self) -> Result<Value> {
        let length = if self.rest.starts_with('"') { text_length(self.rest) } else { bare_length(self.rest) };
        let Some((literal, rest)) = length.and_then(|length| self.rest.split_at_checked(length)) else {
            return Err(self.unexpected("a text in double quotes, a number, true, false or null"));
        };
        // Booleans and null are read in any case, as directories write them.
        let lower = literal.to_ascii_lowercase();
        let json = if matches!(lower.as_str(), "true" | "false" | "null") { &lower } else { literal };
        let read = serde_json::from_str::<Value>(json).ok().filter(|value| !value.is_object() && !value.is_array());
        let Some(value) = read else {
            return Err(self.unexpected("a text in double quotes, a number, true, false or null"));
        };
        if value.as_str().is_some_and(|text| text.contains('\0')) {
            return Err(invalid("must not contain a NUL character"));
        }
        self.rest = rest;
        Ok(value)
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn takes(&mut self, sign: char) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// A word in any case, with what parts it from the next.
    fn takes_word(&mut self, word: &str) -> bool {
        let rest = self.rest.trim_start_matches([' ', '\t']);
        let Some((start, after)) = rest.split_at_checked(word.len()) else { return false };
        let ends = after.is_empty() || after.starts_with([' ', '\t', '(', ')', ']', '"']);
        let found = start.eq_ignore_ascii_case(word) && ends;
        if found {
            self.rest = after;
        }
        found
    }

    fn unexpected(&self, expected: &str) -> Error {
        let place = self.text[..self.text.len() - self.rest.len()].chars().count() + 1;
        invalid(format_args!("needs {expected} at character {place}"))
    }
}

fn one_or(mut parts: Vec<Filter>, many: fn(Vec<Filter>) -> Filter) -> Filter {
    match parts.len() {
        1 => parts.remove(0),
        _ => many(parts),
    }
}

fn has_entry(filter: &Filter) -> bool {
    match filter {
        Filter::Any(parts) | Filter::All(parts) => parts.iter().any(has_entry),
        Filter::Not(inner) => has_entry(inner),
        Filter::Entry { .. } => true,
        Filter::Present(_) | Filter::Compare { .. } => false,
    }
}

/// The length of a text in quotes, with them.
fn text_length(rest: &str) -> Option<usize> {
    let mut escaped = false;
    for (place, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(place + 1),
            _ => {}
        }
    }
    None
}

fn bare_length(rest: &str) -> Option<usize> {
    let length = rest.find([' ', '\t', ')', ']']).unwrap_or(rest.len());
    (length > 0).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        parse(text).map_or_else(|error| error.public().to_owned(), |filter| filter.to_string())
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        for text in [
            r#"userName eq "bjensen""#,
            r#"name.familyName co "O'Malley""#,
            r#"urn:ietf:params:scim:schemas:core:2.0:User:userName sw "J""#,
            "title pr",
            r#"meta.lastModified gt "2011-05-13T04:42:34Z""#,
            r#"title pr and userType eq "Employee""#,
            r#"userType eq "Employee" and (emails co "example.com" or emails.value co "example.org")"#,
            r#"userType ne "Employee" and not (emails co "example.com" or emails.value co "example.org")"#,
            r#"emails[type eq "work" and value co "@example.com"] or ims[type eq "xmpp" and value co "@foo.com"]"#,
        ] {
            assert_eq!(read(text), text);
        }
    }

    #[test]
    fn and_binds_stronger_than_or() {
        assert_eq!(read("a pr or b pr and c pr"), "a pr or (b pr and c pr)");
        assert_eq!(read("(a pr OR b pr) AND NOT(c pr)"), "(a pr or b pr) and not (c pr)");
    }

    #[test]
    fn what_directories_write_beyond_the_grammar_is_understood() {
        assert_eq!(read(r#"emails[type eq "work"].value eq "a@b""#), r#"emails[type eq "work" and value eq "a@b"]"#);
        assert_eq!(read(r#"active eq True"#), "active eq true");
        assert_eq!(read(r#"  userName   EQ   "a""#), r#"userName eq "a""#);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let operator = "The filter needs an operator (eq, ne, co, sw, ew, gt, ge, lt, le or pr)";
        for (text, message) in [
            ("", "The filter needs the name of an attribute at character 1."),
            ("userName", &format!("{operator} at character 9.")),
            ("userName equals \"a\"", &format!("{operator} at character 9.")),
            (
                "userName eq ada",
                "The filter needs a text in double quotes, a number, true, false or null at character 13.",
            ),
            ("userName eq \"a\" xor b pr", "The filter needs `and`, `or` or its end at character 17."),
            ("(a pr", "The filter needs `)` at character 6."),
            ("a[b pr", "The filter needs `]` at character 7."),
            ("a[b[c pr]]", "The filter has brackets within brackets."),
            ("a eq \"\\u0000\"", "The filter must not contain a NUL character."),
        ] {
            assert_eq!(read(text), message, "{text}");
        }
    }

    #[test]
    fn it_is_bounded() {
        let deep = format!("{}a pr{}", "(".repeat(17), ")".repeat(17));
        assert_eq!(read(&deep), "The filter is nested deeper than 16 levels.");
        assert_eq!(read(&vec!["a pr"; 201].join(" or ")), "The filter has more than 200 comparisons.");
        assert!(read(&format!("a eq \"{}\"", "x".repeat(9_000))).contains("is longer"));
    }

    #[test]
    fn paths_name_attributes_entries_and_their_parts() {
        let read = |text| parse_path(text).map_or_else(|error| error.public().to_owned(), |path| path.to_string());
        for text in [
            "members",
            "name.familyName",
            r#"members[value eq "x"]"#,
            r#"emails[type eq "work"].value"#,
            "urn:ietf:params:scim:schemas:core:2.0:User:name.givenName",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department",
        ] {
            assert_eq!(read(text), text);
        }
        assert_eq!(read("name..x"), "The path needs the name of an attribute at character 6.");
        assert_eq!(read("a b"), "The path needs its end at character 2.");
        assert_eq!(parse_path("").unwrap_err().code(), Code::InvalidPath);
    }
}
