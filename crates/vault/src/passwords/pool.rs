//! The threads that digest passwords.

use std::{sync::Arc, thread};

use crossbeam_channel::{Sender, TrySendError, bounded};
use kernel::{Code, Entropy, Error, Result, Secret};
use tokio::sync::oneshot;

use super::{PasswordVerdict, StoredPassword, argon, imported::Imported};

/// More than that waiting would be answered too late to be of use.
const QUEUE: usize = 64;

type Work = Box<dyn FnOnce() + Send>;

/// Digests and verifies passwords on threads of its own. Cheap to clone; the threads end with the last clone.
#[derive(Clone)]
pub struct Passwords {
    queue: Sender<Work>,
    entropy: Entropy,
    /// Verified against where there is nothing to verify, so that it takes as long.
    dummy: Arc<str>,
}

impl Passwords {
    /// One thread less than there are cores, at least one.
    pub fn start(entropy: Entropy) -> Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads(cores.saturating_sub(1).max(1), entropy)
    }

    fn with_threads(threads: usize, entropy: Entropy) -> Result<Self> {
        let (queue, waiting) = bounded::<Work>(QUEUE);
        for number in 0..threads {
            let waiting = waiting.clone();
            let run = move || waiting.iter().for_each(|work| work());
            thread::Builder::new().name(format!("passwords-{number}")).spawn(run).map_err(Error::internal)?;
        }
        let dummy = argon::of_no_password(&entropy.bytes(), &entropy.bytes()).into();
        Ok(Self { queue, entropy, dummy })
    }

    /// The digest to store for a new password.
    pub async fn digest(&self, password: Secret<String>) -> Result<String> {
        let salt = self.entropy.bytes();
        self.run(move || argon::digest(password.expose(), &salt)).await?
    }

    /// Whether this is the account's password. Takes about as long whatever is stored.
    pub async fn verify(&self, password: Secret<String>, stored: StoredPassword) -> Result<PasswordVerdict> {
        let (dummy, salt) = (Arc::clone(&self.dummy), self.entropy.bytes());
        self.run(move || verify(password.expose(), &stored, &dummy, &salt)).await?
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let job: Work = Box::new(move || {
            // Whoever gave up waiting needs no digest; the slot is for the next.
            if !answer.is_closed() {
                let _ = answer.send(work());
            }
        });
        match self.queue.try_send(job) {
            Ok(()) => answered.await.map_err(Error::internal),
            Err(TrySendError::Full(_)) => Err(overloaded()),
            Err(TrySendError::Disconnected(_)) => Err(Error::internal("the password threads have ended")),
        }
    }
}

fn overloaded() -> Error {
    Error::new(Code::Overloaded, "Too many sign-ins at the moment. Try again shortly.")
}

fn verify(password: &str, stored: &StoredPassword, dummy: &str, salt: &[u8; 16]) -> Result<PasswordVerdict> {
    match stored {
        StoredPassword::Own(digest) if argon::verify(password, digest) => {
            right(password, argon::is_outdated(digest), salt)
        }
        StoredPassword::Own(_) => Ok(PasswordVerdict::Wrong),
        StoredPassword::Imported(digest) if digest.verify(password) => right(password, true, salt),
        StoredPassword::Imported(digest) => Ok(wrong_import(password, digest, dummy)),
        StoredPassword::Nothing => {
            argon::verify(password, dummy);
            Ok(PasswordVerdict::Wrong)
        }
    }
}

/// A plain hash is checked in no time, which would tell an imported account from an unknown one.
fn wrong_import(password: &str, digest: &Imported, dummy: &str) -> PasswordVerdict {
    if !digest.is_slow() {
        argon::verify(password, dummy);
    }
    PasswordVerdict::Wrong
}

fn right(password: &str, outdated: bool, salt: &[u8; 16]) -> Result<PasswordVerdict> {
    let renewed = if outdated { Some(argon::digest(password, salt)?) } else { None };
    Ok(PasswordVerdict::Right { renewed })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::passwords::DigestAlgorithm;

    fn secret(text: &str) -> Secret<String> {
        Secret::new(text.into())
    }

    fn imported(value: &str) -> StoredPassword {
        StoredPassword::Imported(Imported { algorithm: DigestAlgorithm::Md5, value: value.into(), pepper: None })
    }

    #[tokio::test]
    async fn own_digests_verify_and_stay() {
        let passwords = Passwords::start(Entropy::os()).expect("starts");
        let digest = passwords.digest(secret("violet harbour")).await.expect("digests");
        let right = passwords.verify(secret("violet harbour"), StoredPassword::Own(digest.clone())).await;
        assert_eq!(right.expect("verifies"), PasswordVerdict::Right { renewed: None });
        let wrong = passwords.verify(secret("violet harbor"), StoredPassword::Own(digest)).await;
        assert_eq!(wrong.expect("verifies"), PasswordVerdict::Wrong);
    }

    #[tokio::test]
    async fn an_imported_digest_is_renewed_at_its_first_use() {
        let passwords = Passwords::start(Entropy::os()).expect("starts");
        let stored = imported("5f4dcc3b5aa765d61d8327deb882cf99");
        let Ok(PasswordVerdict::Right { renewed: Some(digest) }) =
            passwords.verify(secret("password"), stored.clone()).await
        else {
            panic!("the password is right and its digest old")
        };
        let again = passwords.verify(secret("password"), StoredPassword::Own(digest)).await.expect("verifies");
        assert_eq!(again, PasswordVerdict::Right { renewed: None });
        assert_eq!(passwords.verify(secret("other"), stored).await.expect("verifies"), PasswordVerdict::Wrong);
        assert_eq!(
            passwords.verify(secret(""), StoredPassword::Nothing).await.expect("verifies"),
            PasswordVerdict::Wrong
        );
    }

    /// The processor time of a check, which does not depend on what else the machine does.
    fn cost(stored: &StoredPassword, dummy: &str) -> u64 {
        let spent = || -> u64 {
            let told = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
            told.split_whitespace().next().and_then(|nanoseconds| nanoseconds.parse().ok()).expect("a number")
        };
        let before = spent();
        assert_eq!(verify("wrong", stored, dummy, &[7; 16]).expect("verifies"), PasswordVerdict::Wrong);
        spent() - before
    }

    /// Else an answer's time would tell which addresses have an account, and which of them came from where.
    #[test]
    fn whoever_has_no_password_or_a_quick_digest_costs_as_much() {
        let dummy = argon::of_no_password(&[1; 16], &[2; 32]);
        let own = cost(&StoredPassword::Own(argon::digest("right", &[3; 16]).expect("a digest")), &dummy);
        for other in [StoredPassword::Nothing, imported("5f4dcc3b5aa765d61d8327deb882cf99")] {
            let cost = cost(&other, &dummy);
            assert!(cost > own / 4, "{cost} ns instead of {own}");
        }
    }

    #[tokio::test]
    async fn beyond_the_queue_work_is_refused_at_once() {
        let passwords = Passwords::with_threads(1, Entropy::os()).expect("starts");
        let (release, held) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel::<()>();
        let busy = tokio::spawn({
            let passwords = passwords.clone();
            async move {
                let hold = move || {
                    begun.send(()).expect("the test waits");
                    held.recv()
                };
                passwords.run(hold).await
            }
        });
        tokio::task::spawn_blocking(move || begins.recv()).await.expect("joins").expect("the thread is busy");
        let queued: Vec<_> = (0..QUEUE)
            .map(|_| {
                let passwords = passwords.clone();
                tokio::spawn(async move { passwords.run(|| ()).await })
            })
            .collect();
        while passwords.queue.len() < QUEUE {
            tokio::task::yield_now().await;
        }
        assert_eq!(passwords.run(|| ()).await.expect_err("full").code(), Code::Overloaded);
        release.send(()).expect("the thread waits");
        busy.await.expect("joins").expect("ran").expect("released");
        for waiting in queued {
            waiting.await.expect("joins").expect("ran");
        }
        passwords.run(|| ()).await.expect("there is room again");
    }
}
