//! People: one per app and email address, compared without case. What a person is in a workspace is a membership.

mod store;

use std::{
    collections::{BTreeMap, HashMap},
    mem,
};

use ::store::{Owner, Tx, is_unique_violation};
use kernel::{AppId, Code, Error, Result, Timestamp, UserId, email_key};
use spine::{emit, purge};

use crate::facts::SessionsEnded;

/// A person, whatever workspaces they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    /// As it was first written.
    pub email: String,
    pub first_name: String,
    pub last_name: String,
    pub phone_number: Option<String>,
}

/// Whether the person has shown that they read mails to their address: they have an account of their own then, and need no
/// link to begin with.
pub fn has_proven_address(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<bool> {
    store::has_proven_address(tx, app, id)
}

/// The person with this address, made if there is none; true when it was made. Names that are not known yet are taken
/// over, known ones stay: whoever invites a person does not rename them. Until the transaction ends, nobody deletes
/// the person.
pub fn find_or_create(tx: &mut Tx<'_>, app: AppId, email: &str, first: &str, last: &str) -> Result<(User, bool)> {
    let new = Newcomer { email, first_name: first, last_name: last, email_verified: false }.person(tx.new_id());
    let user = store::find_or_insert(tx, app, &new, &email_key(email))?;
    let is_new = user.id == new.id;
    Ok((user, is_new))
}

/// Somebody who may be here already.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer<'a> {
    pub email: &'a str,
    pub first_name: &'a str,
    pub last_name: &'a str,
    /// Whether the address counts as proven, should there be nobody who has it.
    pub email_verified: bool,
}

impl Newcomer<'_> {
    fn person(&self, id: UserId) -> User {
        User {
            id,
            email: self.email.to_owned(),
            first_name: self.first_name.to_owned(),
            last_name: self.last_name.to_owned(),
            phone_number: None,
        }
    }
}

/// The same for several people, in their order. Who comes twice is new once.
pub fn find_or_create_all(tx: &mut Tx<'_>, app: AppId, newcomers: &[Newcomer<'_>]) -> Result<Vec<(User, bool)>> {
    // In the order of their addresses: two transactions that make the same people seldom wait for each other.
    let mut wanted = BTreeMap::new();
    for newcomer in newcomers {
        wanted
            .entry(email_key(newcomer.email))
            .or_insert_with(|| (newcomer.person(tx.new_id()), newcomer.email_verified));
    }
    let made = store::insert_new(tx, app, &wanted)?;
    let mut people = HashMap::new();
    for (key, (new, _)) in wanted {
        let id = new.id;
        // Who was there a moment ago may have gone since, and is made by the second try.
        let user = if made.contains(&id) { new } else { store::find_or_insert(tx, app, &new, &key)? };
        let is_new = user.id == id;
        people.insert(key, (user, is_new));
    }
    let person = |newcomer: &Newcomer<'_>| {
        let (user, is_new) = people.get_mut(&email_key(newcomer.email))?;
        Some((user.clone(), mem::take(is_new)))
    };
    Ok(newcomers.iter().filter_map(person).collect())
}

pub fn find(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<Option<User>> {
    store::find(tx, app, id)
}

/// Those of these addresses, as [`email_key`] writes them, that somebody has.
pub fn known(tx: &mut Tx<'_>, app: AppId, keys: &[String]) -> Result<Vec<String>> {
    store::known(tx, app, keys)
}

/// Whether the person was made at this time or later.
pub fn is_made_since(tx: &mut Tx<'_>, app: AppId, id: UserId, since: Timestamp) -> Result<bool> {
    store::is_made_since(tx, app, id, since)
}

pub fn find_by_email(tx: &mut Tx<'_>, app: AppId, email: &str) -> Result<Option<User>> {
    store::find_by_email(tx, app, &email_key(email))
}

/// Gives a person another address, which is not proven; 409 when somebody has it.
pub fn change_address(tx: &mut Tx<'_>, app: AppId, id: UserId, email: &str) -> Result<()> {
    let taken = || Error::new(Code::Conflict, "Another person has this email address.");
    match store::change_address(tx, app, id, email, &email_key(email)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(taken()),
        // Somebody took it at the same moment.
        Err(error) if is_unique_violation(&error) => Err(taken()),
        Err(error) => Err(error),
    }
}

/// Keeps others from changing or deleting the person until the transaction ends.
pub fn hold(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<()> {
    store::hold_by_id(tx, app, id)
}

/// Changes names and phone number, in every workspace at once.
pub(crate) fn update(tx: &mut Tx<'_>, app: AppId, user: &User) -> Result<()> {
    store::update(tx, app, user)
}

/// What a person calls themselves wins over what others called them; what they leave empty stays.
pub fn name_themselves(tx: &mut Tx<'_>, app: AppId, id: UserId, first: &str, last: &str) -> Result<()> {
    store::name_themselves(tx, app, id, first, last)
}

/// First and last name as they are shown together.
pub fn full_name(first: &str, last: &str) -> String {
    format!("{} {}", first.trim(), last.trim()).trim().to_owned()
}

/// The address is proven: a value mailed to it came back.
pub fn verify_email(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<()> {
    store::verify_email(tx, app, id)
}

/// Every token issued until now is refused from here on.
pub fn end_sessions(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<()> {
    store::end_sessions(tx, app, id)?;
    emit(tx, app, &SessionsEnded { user_id: id })
}

/// Deletes the person, with their one-time links, unless some workspace still has them; true when they are gone.
pub(crate) fn delete_if_nowhere(tx: &mut Tx<'_>, app: AppId, id: UserId) -> Result<bool> {
    // Held first, looked at afterwards: an invitation that is being made holds the person too, and is seen here once
    // it has committed.
    store::hold_by_id(tx, app, id)?;
    store::delete_links_if_nowhere(tx, app, id)?;
    let is_gone = store::delete_if_nowhere(tx, app, id)?;
    if is_gone {
        purge::remember(tx, app, Owner::Person, &[id])?;
    }
    Ok(is_gone)
}
