//! Cuts a batch into workspaces and people while it arrives, without ever holding more than one of them. What is inside a
//! piece is left to whoever reads it; where pieces begin and end is judged here.

use std::{borrow::Cow, mem};

use kernel::{Code, Error, Result};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{
    ImportUser, MOST_TENANTS, MOST_USERS, Place,
    cut::{Cut, is_space},
};

/// A part of `[ { "tenant": …, "users": [ … ] } ]`, with its place as findings name it. Items are counted from 0.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    Tenant {
        item: usize,
        place: Place,
        value: Value,
    },
    User {
        item: usize,
        place: Place,
        person: Person,
    },
    /// Something that is not what should stand at this place, with what it must be. It may stand for a workspace, and for
    /// somebody.
    Wrong {
        tenant_of: Option<usize>,
        is_person: bool,
        place: String,
        problem: Cow<'static, str>,
    },
    /// The item goes on later.
    Pause {
        item: usize,
    },
    /// The item is over.
    End {
        item: usize,
    },
}

/// Somebody in a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Person {
    /// Who was read at once, since all is right with them.
    Read(Box<ImportUser>),
    /// Who is to be judged.
    Given(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the list.
    Start,
    /// In the list, before an item.
    Item {
        first: bool,
    },
    AfterItem,
    /// In an item, before a member's name.
    Name {
        first: bool,
    },
    InName,
    Colon,
    Value,
    InValue,
    AfterMember,
    /// In `users`, before somebody.
    User {
        first: bool,
    },
    InUser,
    AfterUser,
    /// An item that is no object.
    InWrongItem,
    /// Behind the list.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberName {
    Tenant,
    Users,
    Other,
}

/// Takes a batch in pieces of any size.
pub struct Splitter {
    state: State,
    value: Cut,
    member: MemberName,
    /// Members that the item has brought: a second one of a name is refused.
    has_tenant: bool,
    has_users: bool,
    items: usize,
    users: usize,
    /// Of the item.
    place: usize,
    /// Bytes before the piece in work, for messages.
    offset: usize,
    /// What is left of the mark.
    mark: &'static [u8],
}

impl Default for Splitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Splitter {
    pub fn new() -> Self {
        Self {
            state: State::Start,
            value: Cut::default(),
            member: MemberName::Other,
            has_tenant: false,
            has_users: false,
            items: 0,
            users: 0,
            place: 0,
            offset: 0,
            mark: MARK,
        }
    }

    /// Takes the next bytes and adds the pieces that they complete.
    pub fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<()> {
        let mut at = self.pass_mark(bytes)?;
        while at < bytes.len() {
            match self.state {
                State::InName | State::InValue | State::InUser | State::InWrongItem => {
                    let taken = self.value.take(&bytes[at..]).map_err(|problem| self.malformed(at, problem))?;
                    at += taken;
                    if self.value.is_over() {
                        let json = self.value.end(&bytes[at - taken..at]);
                        self.complete(json.as_deref(), at, pieces)?;
                    }
                }
                _ if is_space(bytes[at]) => at += 1,
                _ => at += usize::from(self.step(bytes[at], at, pieces)?),
            }
        }
        self.offset += bytes.len();
        Ok(())
    }

    /// Passes over the mark that a body may begin with, wherever it is cut; how much of it is here.
    fn pass_mark(&mut self, bytes: &[u8]) -> Result<usize> {
        let here = self.mark.iter().zip(bytes).take_while(|(wanted, byte)| wanted == byte).count();
        let (begun, left) = (self.mark.len() < MARK.len() || here > 0, &self.mark[here..]);
        self.mark = if begun || bytes.is_empty() { left } else { &[] };
        match here < bytes.len() && !self.mark.is_empty() {
            true => Err(self.malformed(here, "something else was expected")),
            false => Ok(here),
        }
    }

    /// Fails unless the list has come to its end.
    pub fn finish(&self) -> Result<()> {
        match self.state {
            State::Done => Ok(()),
            State::Start => Err(Error::new(Code::MalformedJson, "The body is empty; send a JSON list.")),
            _ => Err(self.malformed(0, "it ends too early")),
        }
    }

    /// One significant byte outside of values; whether it is used up.
    fn step(&mut self, byte: u8, at: usize, pieces: &mut Vec<Piece>) -> Result<bool> {
        self.state = match (self.state, byte) {
            (State::Start, b'[') => State::Item { first: true },
            (State::Start, _) => return Err(Error::invalid("body", "must be a list")),
            (State::Item { first: true }, b']') | (State::AfterItem, b']') => State::Done,
            (State::AfterItem, b',') => State::Item { first: false },
            (State::Item { .. }, b'{') => {
                self.begin_item()?;
                State::Name { first: true }
            }
            (State::Item { .. }, _) => {
                self.begin_item()?;
                self.value.begin();
                self.state = State::InWrongItem;
                return Ok(false);
            }
            (State::Name { first: true }, b'}') | (State::AfterMember, b'}') => {
                pieces.push(Piece::End { item: self.items - 1 });
                State::AfterItem
            }
            (State::AfterMember, b',') => State::Name { first: false },
            (State::Name { .. }, b'"') => {
                self.value.begin();
                self.state = State::InName;
                return Ok(false);
            }
            (State::Colon, b':') => State::Value,
            (State::Value, b'[') if self.member == MemberName::Users => State::User { first: true },
            (State::Value, _) => {
                self.value.begin();
                self.state = State::InValue;
                return Ok(false);
            }
            (State::User { first: true }, b']') | (State::AfterUser, b']') => State::AfterMember,
            (State::AfterUser, b',') => State::User { first: false },
            (State::User { .. }, _) => {
                self.count_user()?;
                self.value.begin();
                self.state = State::InUser;
                return Ok(false);
            }
            _ => return Err(self.malformed(at, "something else was expected")),
        };
        Ok(true)
    }

    fn begin_item(&mut self) -> Result<()> {
        self.items += 1;
        (self.has_tenant, self.has_users, self.place) = (false, false, 0);
        if self.items > MOST_TENANTS {
            return Err(Error::invalid("body", format!("must have at most {MOST_TENANTS} workspaces")));
        }
        Ok(())
    }

    fn count_user(&mut self) -> Result<()> {
        self.users += 1;
        if self.users > MOST_USERS {
            return Err(Error::invalid("body", format!("must have at most {MOST_USERS} users, owners included")));
        }
        Ok(())
    }

    /// A value has come to its end; there is none of it when it was too large.
    fn complete(&mut self, json: Option<&[u8]>, at: usize, pieces: &mut Vec<Piece>) -> Result<()> {
        let item = self.items - 1;
        self.state = match self.state {
            State::InName => {
                let name: String =
                    serde_json::from_slice(json.unwrap_or_default()).map_err(|error| self.not_json(at, &error))?;
                self.member = self.named(&name, pieces);
                State::Colon
            }
            State::InWrongItem => {
                self.pass_over(json, at)?;
                pieces.push(wrong(Some(item), format!("[{item}]"), "must be an object"));
                pieces.push(Piece::End { item });
                State::AfterItem
            }
            State::InUser => {
                let place = Place::User(item, self.place);
                self.place += 1;
                pieces.push(match self.read_person(json, at)? {
                    Ok(person) => Piece::User { item, place, person },
                    Err(problem) => wrong_person(None, place.to_string(), problem),
                });
                State::AfterUser
            }
            _ => {
                pieces.extend(self.member_piece(item, json, at)?);
                State::AfterMember
            }
        };
        Ok(())
    }

    fn member_piece(&mut self, item: usize, json: Option<&[u8]>, at: usize) -> Result<Option<Piece>> {
        if self.member == MemberName::Tenant {
            self.count_user()?;
            let place = Place::Tenant(item);
            return Ok(Some(match self.read(json, at)? {
                Ok(value) => Piece::Tenant { item, place, value },
                Err(problem) => wrong_person(Some(item), place.to_string(), problem),
            }));
        }
        self.pass_over(json, at)?;
        let is_wrong = self.member == MemberName::Users && json != Some(b"null");
        Ok(is_wrong.then(|| wrong(None, format!("[{item}].users"), "must be a list")))
    }

    fn read_person(&self, json: Option<&[u8]>, at: usize) -> Result<Result<Person, Cow<'static, str>>> {
        match json.and_then(ImportUser::ordinary) {
            Some(user) => Ok(Ok(Person::Read(Box::new(user)))),
            None => Ok(self.read(json, at)?.map(Person::Given)),
        }
    }

    /// The value, or what is wrong with this piece alone.
    fn read(&self, json: Option<&[u8]>, at: usize) -> Result<Result<Value, Cow<'static, str>>> {
        let Some(json) = json else { return Ok(Err(TOO_LARGE.into())) };
        match web::parse_json(json) {
            Ok(value) => Ok(Ok(value)),
            // JSON, but not as bodies may have it: a member twice, or too deep. What is behind that was not read yet.
            Err(error) if error.is_data() => {
                self.pass_over(Some(json), at)?;
                Ok(Err(format!("cannot be read: {}", said(&error)).into()))
            }
            Err(error) => Err(self.not_json(at, &error)),
        }
    }

    /// Nobody reads it, but it must be JSON.
    fn pass_over(&self, json: Option<&[u8]>, at: usize) -> Result<()> {
        let Some(json) = json else { return Ok(()) };
        serde_json::from_slice::<IgnoredAny>(json).map(|_| ()).map_err(|error| self.not_json(at, &error))
    }

    /// What is given twice is passed over the second time.
    fn named(&mut self, name: &str, pieces: &mut Vec<Piece>) -> MemberName {
        let (member, seen) = match name {
            "tenant" => (MemberName::Tenant, &mut self.has_tenant),
            "users" => (MemberName::Users, &mut self.has_users),
            _ => return MemberName::Other,
        };
        if mem::replace(seen, true) {
            pieces.push(wrong(None, format!("[{}].{name}", self.items - 1), "is given twice"));
            return MemberName::Other;
        }
        member
    }

    fn not_json(&self, at: usize, error: &serde_json::Error) -> Error {
        self.malformed(at, &error.to_string())
    }

    fn malformed(&self, at: usize, problem: &str) -> Error {
        let place = self.offset + at;
        Error::new(Code::MalformedJson, format!("The body is not valid JSON near byte {place}: {problem}."))
    }
}

fn wrong(tenant_of: Option<usize>, place: String, problem: impl Into<Cow<'static, str>>) -> Piece {
    Piece::Wrong { tenant_of, is_person: false, place, problem: problem.into() }
}

/// Somebody who cannot be read; a workspace stands for its owner.
fn wrong_person(tenant_of: Option<usize>, place: String, problem: impl Into<Cow<'static, str>>) -> Piece {
    Piece::Wrong { tenant_of, is_person: true, place, problem: problem.into() }
}

/// Without the line and column, which count from the beginning of the piece.
fn said(error: &serde_json::Error) -> String {
    let said = error.to_string();
    said.split_once(" at line ").map_or(said.as_str(), |(what, _)| what).to_owned()
}

const TOO_LARGE: &str = "is larger than 1 MiB";

/// UTF-8's byte order mark, which some editors write.
const MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::cut::LARGEST_PIECE, *};

    fn split(body: &[u8], step: usize) -> Result<Vec<Piece>> {
        let (mut splitter, mut pieces) = (Splitter::new(), Vec::new());
        for bytes in body.chunks(step.max(1)) {
            splitter.push(bytes, &mut pieces)?;
        }
        splitter.finish()?;
        Ok(pieces)
    }

    fn value(json: &str) -> Value {
        serde_json::from_str(json).expect(json)
    }

    fn tenant(item: usize, json: &str) -> Piece {
        Piece::Tenant { item, place: Place::Tenant(item), value: value(json) }
    }

    fn user(item: usize, place: usize, json: &str) -> Piece {
        Piece::User { item, place: Place::User(item, place), person: Person::Given(value(json)) }
    }

    #[test]
    fn a_list_is_cut_into_workspaces_and_people() {
        let body = br#" [ {"tenant": {"a":"]\"}"}, "x": [1, {"y": 2}], "users" : [ {"b":1},2 ,"c" ]} , {"users":[],"tenant":3} ]  "#;
        let pieces = split(body, 1).expect("it is JSON");
        let expected = [
            tenant(0, r#"{"a":"]\"}"}"#),
            user(0, 0, r#"{"b":1}"#),
            user(0, 1, "2"),
            user(0, 2, r#""c""#),
            Piece::End { item: 0 },
            tenant(1, "3"),
            Piece::End { item: 1 },
        ];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn what_is_not_in_its_place_is_named() {
        let pieces = split(br#"[1,{"users":{}},"a",{"users":null}]"#, 3).expect("it is JSON");
        let wrong = |tenant_of, place: &str, problem| wrong(tenant_of, place.to_owned(), problem);
        let expected = [
            wrong(Some(0), "[0]", "must be an object"),
            Piece::End { item: 0 },
            wrong(None, "[1].users", "must be a list"),
            Piece::End { item: 1 },
            wrong(Some(2), "[2]", "must be an object"),
            Piece::End { item: 2 },
            Piece::End { item: 3 },
        ];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn what_is_given_twice_is_named_and_passed_over() {
        let body = br#"[{"users":[1],"tenant":1,"users":[{"a":]},"tenant":2}]"#;
        assert_eq!(split(body, 3).expect_err("no JSON").code(), Code::MalformedJson);
        for body in [r#"[{"tenant":{"a":1,"a":2]}]"#, r#"[{"users":[{"a":1,"a":2,}]}]"#] {
            assert_eq!(split(body.as_bytes(), 3).expect_err(body).code(), Code::MalformedJson, "{body}");
        }
        let body = br#"[{"users":[1],"tenant":1,"users":[3],"tenant":2},{"users":[{"a":{"b":1,"b":2}}]}]"#;
        let pieces = split(body, 3).expect("it is JSON");
        let expected = [
            user(0, 0, "1"),
            tenant(0, "1"),
            wrong(None, "[0].users".to_owned(), "is given twice"),
            wrong(None, "[0].tenant".to_owned(), "is given twice"),
            Piece::End { item: 0 },
            wrong_person(None, "[1].users[0]".to_owned(), "cannot be read: the member \"b\" is given twice"),
            Piece::End { item: 1 },
        ];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn what_is_no_list_or_no_json_is_refused() {
        for body in ["{}", "1", "null", "\"a\""] {
            assert_eq!(split(body.as_bytes(), 1).expect_err(body).code(), Code::ValidationFailed, "{body}");
        }
        let deep = "[".repeat(1_000_000);
        for body in [
            "",
            " ",
            "[",
            "[}",
            "[1",
            "[1}",
            "[{]",
            "[{\"a\"}]",
            "[{\"a\":}]",
            "[{\"a\":1,}]",
            "[1,]",
            "[,1]",
            "[1]]",
            "[tru]",
            "[{\"users\":[1 2]}]",
            "[{a:1}]",
            "[{\"users\":[{\"a\":]}]",
            &deep,
        ] {
            let code = split(body.as_bytes(), 7).expect_err(body).code();
            assert_eq!(code, Code::MalformedJson, "{}", body.chars().take(40).collect::<String>());
        }
    }

    #[test]
    fn a_piece_that_is_too_large_is_passed_over() {
        let body = format!(
            r#"[{{"tenant":{{"a":"{}"}},"users":["{}",1]}}]"#,
            "x".repeat(LARGEST_PIECE),
            "y".repeat(LARGEST_PIECE)
        );
        let pieces = split(body.as_bytes(), 4096).expect("it is JSON");
        let wrong = |tenant_of, place: &str| wrong_person(tenant_of, place.to_owned(), TOO_LARGE);
        assert_eq!(
            pieces,
            [wrong(Some(0), "[0].tenant"), wrong(None, "[0].users[0]"), user(0, 1, "1"), Piece::End { item: 0 }]
        );
    }

    #[test]
    fn no_batch_has_more_than_it_may() {
        let body = format!("[{}{{}}]", "{},".repeat(MOST_TENANTS));
        assert_eq!(split(body.as_bytes(), 999).expect_err("too many").code(), Code::ValidationFailed);
        let body = format!(r#"[{{"users":[{}1]}}]"#, "1,".repeat(MOST_USERS));
        assert_eq!(split(body.as_bytes(), 999).expect_err("too many").code(), Code::ValidationFailed);
    }

    proptest! {
        /// Where the network cuts a body makes no difference, and whatever is taken is JSON.
        #[test]
        fn every_cut_gives_the_same_pieces(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("["), Just("]"), Just("{"), Just("}"), Just(","), Just(":"), Just("\"tenant\""), Just("\"users\""),
                    Just("\"a\\\"\""), Just("1"), Just("null"), Just(" "), Just("{\"tenant\":{},\"users\":[1]}"), Just("\\"),
                ],
                0..24,
            ),
            step in 1_usize..9,
        ) {
            let body = format!("[{}]", parts.concat());
            let (whole, cut) = (split(body.as_bytes(), usize::MAX), split(body.as_bytes(), step));
            prop_assert_eq!(whole.is_ok(), cut.is_ok());
            if let (Ok(whole), Ok(cut)) = (whole, cut) {
                prop_assert_eq!(whole, cut);
                prop_assert!(serde_json::from_str::<IgnoredAny>(&body).is_ok(), "{}", body);
            }
        }
    }
}
