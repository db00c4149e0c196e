//! Second factors: a code by SMS, or from an authenticator app (TOTP), and a backup code for the day the phone is lost.
//! A code works once; five wrong ones end the session, and wrong ones also count against the person, backup codes apart.

mod factors;
pub(crate) mod flows;
pub mod http;
#[cfg(test)]
mod properties;
pub(crate) mod store;
mod totp;

use std::time::Duration;

use ::store::Tx;
use kernel::{Actor, AppId, Code, Error, Result, Timestamp, text::one_line};
use spine::{NewSms, queue_sms};
use tenancy::{App, locks::Lock, logins, members};
use vault::{Place, hash_token};

pub use factors::{Enrolled, SecondFactor, clear, enrolled, find as find_factor};
pub(crate) use factors::{forget as forget_factors, forget_alone as forget_factor, turn_off};
use store::under_way::{self, UnderWay};

use crate::{
    Identity,
    abuse::{self, Attempt},
    announcements,
    facts::{FactorChange, FailureReason},
    proof::MfaState,
    sessions::{self, BegunSession, LoginClaims, SessionId},
};

const CODE_LIFETIME: Duration = Duration::from_secs(5 * 60);
const WRONG_CODES: i64 = 5;

/// Counts an attempt before it is looked at, so that no number of guesses at once gets past the limit, in one session or in
/// several. Those of one person wait for each other here.
fn take(tx: &mut Tx<'_>, session: &LoginClaims, attempt: &Attempt) -> Result<UnderWay> {
    sessions::check_live(tx, session)?;
    attempt.take(tx)?;
    under_way::count(tx, session)?.ok_or_else(logins::ended)
}

/// What came of an attempt. A wrong one has to be committed, so it is not an error yet.
enum Judged<T> {
    Right(T),
    Wrong,
}

impl<T> Judged<T> {
    fn settled(self) -> Result<T> {
        match self {
            Self::Right(value) => Ok(value),
            Self::Wrong => {
                Err(Error::new(Code::WrongCode, "The code is incorrect, has expired, or has already been used."))
            }
        }
    }
}

fn wrong<T>(tx: &mut Tx<'_>, session: &LoginClaims, attempt: &Attempt, under_way: &UnderWay) -> Result<Judged<T>> {
    if under_way.wrong_codes >= WRONG_CODES {
        sessions::end(tx, session)?;
    }
    attempt.failed(tx)?;
    announcements::login_failed(tx, session.aid, Some(session.sub), FailureReason::Code)?;
    Ok(Judged::Wrong)
}

/// Sends a fresh code by SMS, which takes the place of an earlier one; nothing is sent for an authenticator app.
pub fn send_code(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    session: SessionId,
    factor: &SecondFactor,
) -> Result<()> {
    match factor {
        SecondFactor::Sms { phone } => {
            abuse::count_message(tx, app.id, phone)?;
            send_to(tx, identity, app, session, phone)
        }
        SecondFactor::Totp { .. } => Ok(()),
    }
}

fn send_to(tx: &mut Tx<'_>, identity: &Identity, app: &App, session: SessionId, phone: &str) -> Result<()> {
    let code = six_digits(tx);
    let keyring = &identity.tenancy.keyring;
    let digest = keyring.fingerprint(&session.to_string(), &code);
    under_way::put_code(tx, app.id, session, &digest, tx.now().plus(CODE_LIFETIME))?;
    let text =
        format!("{code} is your verification code for {}. It expires in 5 minutes.", one_line(&app.profile.name));
    queue_sms(tx, keyring, &NewSms { app: Some(app.id), to: phone.to_owned(), text }).map(|_| ())
}

/// Each of the million equally likely, but for one part in four thousand million.
fn six_digits(tx: &Tx<'_>) -> String {
    format!("{:06}", u64::from_be_bytes(tx.entropy().bytes()) % 1_000_000)
}

fn fits_sms(identity: &Identity, now: Timestamp, session: &LoginClaims, under_way: &UnderWay, code: &str) -> bool {
    let digest = under_way.code_digest.as_deref().unwrap_or_default();
    let keyring = &identity.tenancy.keyring;
    keyring.matches_fingerprint(&session.jti.to_string(), code.trim(), digest)
        && under_way.code_expires_at.is_some_and(|expires_at| expires_at > now)
}

fn setup_place(session: &str, app: AppId) -> Place<'_> {
    Place { table: "login_sessions", column: "setup_sealed_secret", row: session, app: Some(app) }
}

/// What a login waits for.
pub(crate) enum Stage {
    /// A factor that was set up, or a passkey.
    Challenge(Enrolled),
    /// The choice of a factor to set up.
    Choose,
    /// The first code, sent to this phone.
    Phone(String),
    /// The first code of an authenticator app with this secret.
    App(NewSecret),
    /// Nothing: all factors were shown.
    Passed,
}

fn stage(tx: &mut Tx<'_>, identity: &Identity, app: &App, session: &LoginClaims) -> Result<Stage> {
    sessions::check_live(tx, session)?;
    match session.mfa {
        MfaState::Disabled | MfaState::Completed => return Ok(Stage::Passed),
        MfaState::Required => {
            let enrolled = enrolled(tx, app, session.sub)?;
            return if enrolled.is_any() { Ok(Stage::Challenge(enrolled)) } else { Err(logins::ended()) };
        }
        MfaState::Setup => check_at_home(tx, session)?,
    }
    let under_way = under_way::find(tx, session)?.ok_or_else(logins::ended)?;
    match (under_way.setup_phone, under_way.setup_sealed_secret) {
        (Some(phone), _) => Ok(Stage::Phone(phone)),
        (None, Some(sealed)) => {
            let row = session.jti.to_string();
            let secret = identity.tenancy.keyring.open(&setup_place(&row, session.aid), &sealed)?;
            Ok(Stage::App(new_secret(tx, app, session, secret.expose())?))
        }
        (None, None) => Ok(Stage::Choose),
    }
}

/// Sends a fresh code for the factor that the login asks for.
fn challenge(tx: &mut Tx<'_>, identity: &Identity, app: &App, session: &LoginClaims) -> Result<SecondFactor> {
    sessions::check_live(tx, session)?;
    if session.mfa != MfaState::Required {
        return Err(Error::new(Code::Conflict, "This login does not require a code."));
    }
    let enrolled = enrolled(tx, app, session.sub)?;
    let factor = match enrolled.factor {
        Some(factor) => factor,
        None if enrolled.passkeys => {
            return Err(Error::new(Code::Conflict, "There is no code to send: sign in with the passkey instead."));
        }
        None => return Err(logins::ended()),
    };
    send_code(tx, identity, app, session.jti, &factor)?;
    Ok(factor)
}

/// What a person is to set up.
#[derive(Clone, Debug)]
pub(crate) enum Setup {
    Sms { phone: String },
    Totp,
}

/// The secret of an authenticator app, shown until it is set up.
pub(crate) struct NewSecret {
    pub(crate) base32: String,
    pub(crate) url: String,
}

fn new_secret(tx: &mut Tx<'_>, app: &App, session: &LoginClaims, secret: &[u8]) -> Result<NewSecret> {
    let person = tenancy::people::find(tx, app.id, session.sub)?.ok_or_else(logins::ended)?;
    Ok(NewSecret { base32: totp::base32(secret), url: totp::url(secret, &app.profile.name, &person.email)? })
}

/// A factor that exists is shown before another one takes its place, also when it came into being after this login
/// began.
fn must_show_factor() -> Error {
    Error::new(Code::MfaRequired, "Verify your existing second factor before you set up another one.")
}

/// Begins to set a factor up. Whoever has one shows it first.
fn start_setup(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    session: &LoginClaims,
    setup: &Setup,
) -> Result<Option<NewSecret>> {
    sessions::check_live(tx, session)?;
    check_may_set_up(tx, identity, session)?;
    let row = session.jti.to_string();
    match setup {
        Setup::Sms { phone } => {
            // Counted apart from the codes of logins, which nobody else may use up; and per person, whatever numbers they
            // give, because each message costs money.
            abuse::count_message(tx, app.id, &format!("set-up:{phone}"))?;
            abuse::count_message(tx, app.id, &format!("set-up:{}", session.sub))?;
            under_way::set_up_with(tx, session, Some(phone), None)?;
            send_to(tx, identity, app, session.jti, phone)?;
            Ok(None)
        }
        Setup::Totp => {
            let secret: [u8; totp::SECRET_LENGTH] = tx.entropy().bytes();
            let sealed = identity.tenancy.keyring.seal(&setup_place(&row, app.id), &secret);
            under_way::set_up_with(tx, session, None, Some(&sealed))?;
            new_secret(tx, app, session, &secret).map(Some)
        }
    }
}

/// 403 in a login through a connection while the person belongs to a workspace outside of it: a factor counts in all of their
/// workspaces, and any provider could have named this address.
fn check_at_home(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<()> {
    match session.reach.connection {
        Some(connection) if members::belongs_outside(tx, session.aid, session.sub, connection)? => {
            let message = "Set up two-step verification at your identity provider, or sign in another way first.";
            Err(Error::new(Code::Forbidden, message))
        }
        _ => Ok(()),
    }
}

/// 401 when there is a factor or a passkey that this login has not proven, also one that was set up after the login began:
/// whoever has the password alone must not add a factor of their own.
fn check_may_set_up(tx: &mut Tx<'_>, identity: &Identity, session: &LoginClaims) -> Result<()> {
    check_at_home(tx, session)?;
    tx.lock(&Lock::Factor(session.sub))?;
    if session.has_two_factors() {
        return Ok(());
    }
    let app = identity.tenancy.apps.get(session.aid).ok_or_else(logins::ended)?;
    let enrolled = enrolled(tx, &app, session.sub)?;
    let proven = enrolled.factor.is_none() && (session.backed_up || !enrolled.passkeys);
    if proven { Ok(()) } else { Err(must_show_factor()) }
}

/// Finishes setting a factor up with its first code; the backup code is in the answer and nowhere else.
fn finish_setup(
    tx: &mut Tx<'_>,
    identity: &Identity,
    session: &LoginClaims,
    attempt: &Attempt,
    code: &str,
) -> Result<Judged<(BegunSession, String)>> {
    check_may_set_up(tx, identity, session)?;
    let under_way = take(tx, session, attempt)?;
    let keyring = &identity.tenancy.keyring;
    let (row, user) = (session.jti.to_string(), session.sub.to_string());
    let proof = if let Some(phone) = &under_way.setup_phone {
        let fits = fits_sms(identity, tx.now(), session, &under_way, code);
        fits.then(|| (SecondFactor::Sms { phone: phone.clone() }, 0))
    } else if let Some(sealed) = &under_way.setup_sealed_secret {
        let secret = keyring.open(&setup_place(&row, session.aid), sealed)?;
        totp::matching_step(secret.expose(), code, tx.now())?.map(|step| {
            let sealed_secret = keyring.seal(&factors::secret_place(&user, session.aid), secret.expose());
            (SecondFactor::Totp { sealed_secret }, step)
        })
    } else {
        None
    };
    let Some((proof, step)) = proof else { return wrong(tx, session, attempt, &under_way) };
    let backup_code = backup_code(tx);
    if !factors::put(tx, session, &proof, step, &backup_digest(&backup_code))? {
        return Err(must_show_factor());
    }
    changed(tx, identity, session, FactorChange::SetUp)?;
    attempt.succeeded(tx)?;
    Ok(Judged::Right((sessions::advance(tx, session, MfaState::Completed)?, backup_code)))
}

/// A hundred bits, in letters and digits that are not mistaken for each other, in groups that can be read aloud.
fn backup_code(tx: &Tx<'_>) -> String {
    const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let letters = tx.entropy().bytes::<20>().map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    let groups: Vec<String> = letters.chunks(5).map(|group| group.iter().collect()).collect();
    groups.join("-")
}

/// The digest of a backup code as somebody typed it: hyphens, case and look-alikes do not matter.
fn backup_digest(code: &str) -> String {
    let letters = code.chars().filter(char::is_ascii_alphanumeric).map(|letter| match letter.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    });
    hash_token(&letters.collect::<String>())
}

/// Shows the second factor.
fn commit(
    tx: &mut Tx<'_>,
    identity: &Identity,
    session: &LoginClaims,
    attempt: &Attempt,
    code: &str,
) -> Result<Judged<BegunSession>> {
    let under_way = take(tx, session, attempt)?;
    let factor = match session.mfa {
        MfaState::Required => find_factor(tx, session.aid, session.sub)?,
        _ => None,
    };
    let fits = match factor {
        None => false,
        Some(SecondFactor::Sms { .. }) => fits_sms(identity, tx.now(), session, &under_way, code),
        Some(SecondFactor::Totp { sealed_secret }) => {
            let user = session.sub.to_string();
            let secret = identity.tenancy.keyring.open(&factors::secret_place(&user, session.aid), &sealed_secret)?;
            match totp::matching_step(secret.expose(), code, tx.now())? {
                Some(step) => factors::use_step(tx, session, step)?,
                None => false,
            }
        }
    };
    if !fits {
        return wrong(tx, session, attempt, &under_way);
    }
    attempt.succeeded(tx)?;
    Ok(Judged::Right(sessions::advance(tx, session, MfaState::Completed)?))
}

/// Takes the factor away from somebody who has the backup code, to set up another one. Wrong codes of the factor are no
/// hindrance, and are forgotten along with it.
fn reset(
    tx: &mut Tx<'_>,
    identity: &Identity,
    session: &LoginClaims,
    attempt: &Attempt,
    codes: &Attempt,
    backup_code: &str,
) -> Result<Judged<BegunSession>> {
    let under_way = take(tx, session, attempt)?;
    let used = session.mfa == MfaState::Required && factors::use_backup_code(tx, session, &backup_digest(backup_code))?;
    if !used {
        return wrong(tx, session, attempt, &under_way);
    }
    changed(tx, identity, session, FactorChange::Reset)?;
    attempt.succeeded(tx)?;
    codes.forget(tx)?;
    Ok(Judged::Right(sessions::advance(tx, session, MfaState::Setup)?))
}

fn changed(tx: &mut Tx<'_>, identity: &Identity, session: &LoginClaims, change: FactorChange) -> Result<()> {
    tx.acting_as(Actor::user(session.sub));
    announcements::factor_changed(tx, &identity.tenancy, session.aid, session.sub, change)
}
