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
mod tests;
