//! A password that somebody changes while they are signed in.

use kernel::{Code, Error, Result, Secret};
use tenancy::{callers::SignedIn, people};
use vault::passwords::PasswordVerdict;

use super::{
    credentials::{self, Account},
    ending,
    flows::verify,
    new_password::judge,
    own,
};
use crate::{
    Identity,
    abuse::{Attempt, AttemptSource},
    announcements,
    facts::FailureReason,
};

/// Checks the present password, which counts as an attempt to sign in, and sets another. All other logins end.
pub(crate) async fn change_password(
    identity: &Identity,
    user: SignedIn,
    source: &AttemptSource,
    current: Secret<String>,
    password: Secret<String>,
) -> Result<()> {
    let account = account(identity, &user).await?;
    let password = judge(password, account.email.clone()).await?;
    let attempt = Attempt::password(user.app(), &account.email, source, identity.limits);
    let _turn = identity.gates.enter(&attempt).await?;
    let changed = replace(identity, user, account, attempt, current, password);
    identity.addresses.judge(source.client, changed).await
}

async fn account(identity: &Identity, user: &SignedIn) -> Result<Account> {
    let user = user.clone();
    let found = identity.tenancy.db.read(move |tx| {
        own::fresh_login(tx, &user)?;
        credentials::find(tx, user.app(), &user.membership.email)
    });
    let message = "This account has no password yet. Set one with a link from “Forgot password?”.";
    found.await?.filter(Account::has_password).ok_or_else(|| Error::new(Code::Conflict, message))
}

async fn replace(
    identity: &Identity,
    user: SignedIn,
    account: Account,
    attempt: Attempt,
    current: Secret<String>,
    password: Secret<String>,
) -> Result<()> {
    let db = &identity.tenancy.db;
    let taken = attempt.clone();
    db.write(move |tx| taken.take(tx)).await?;
    let judged = async {
        let verdict = verify(identity, user.app(), Some(&account), current).await?;
        Ok(match verdict {
            PasswordVerdict::Right { .. } => Some(identity.passwords.digest(password).await?),
            _ => None,
        })
    };
    let digest = match judged.await {
        Ok(digest) => digest,
        Err(error) => {
            db.write(move |tx| attempt.give_back(tx)).await?;
            return Err(error);
        }
    };
    let tenancy = identity.tenancy.clone();
    let changed = db.write(move |tx| {
        let (app, person) = (user.app(), user.user());
        people::hold(tx, app, person)?;
        // One that was changed meanwhile is not the right one any more.
        let still = credentials::still_stored(tx, app, &account)?;
        let Some(digest) = digest.as_deref().filter(|_| still) else {
            attempt.failed(tx)?;
            announcements::login_failed(tx, app, Some(person), FailureReason::Password)?;
            return Ok(false);
        };
        attempt.succeeded(tx)?;
        let login = own::fresh_login(tx, &user)?;
        credentials::set(tx, &tenancy, app, person, digest)?;
        ending::void_links(tx, app, person)?;
        ending::end_others(tx, app, person, login.id)?;
        Ok(true)
    });
    match changed.await? {
        true => Ok(()),
        false => Err(Error::credential("The current password is incorrect.")),
    }
}
