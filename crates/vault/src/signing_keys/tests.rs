use kernel::Entropy;
use serde_json::{Value, json};
use store::{Migration, on_both_engines, testing::TestDb};

use super::*;
use crate::{master_key::MasterKey, rsa::test_key};

on_both_engines!(
    MIGRATIONS: nodes_that_start_together_make_one_key,
    a_rotated_key_is_published_then_signs_and_the_old_one_retires,
    one_rotation_runs_at_a_time,
    another_node_learns_of_a_rotation_by_reloading,
    a_rotation_that_cannot_be_announced_did_not_happen,
    no_reload_undoes_a_rotation,
    a_new_master_key_takes_over,
    a_token_of_another_type_or_without_a_key_is_refused,
);

const MIGRATIONS: &[Migration] =
    &[Migration::shared(3, "signing_keys", include_str!("../../../service/migrations/0003_signing_keys.sql"))];

/// The clock of these databases goes on ticking, so moments are approached to within this.
const MINUTE: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
const TYP: &str = "at+jwt";

fn keyring(current: u64, previous: Option<u64>) -> Keyring {
    let master = |seed| MasterKey::generate(&Entropy::seeded_for_tests(seed));
    Keyring::new(&master(current), previous.map(master).as_ref(), Entropy::os())
}

/// A node of the installation: its own memory, the shared database.
fn node(db: &Db) -> SigningKeys {
    SigningKeys::new(keyring(1, None), db.clock().clone())
}

async fn started(db: &Db) -> SigningKeys {
    let keys = node(db);
    keys.ensure_first(db).await.expect("a first key");
    keys
}

async fn rotate(keys: &SigningKeys, db: &Db) -> Rotation {
    keys.rotate(db, LONGEST, |_, _| Ok(())).await.expect("rotates")
}

fn sign(keys: &SigningKeys) -> String {
    keys.sign(TYP, &json!({ "sub": "user_1" })).expect("signs")
}

fn verifies(keys: &SigningKeys, token: &str) -> bool {
    keys.verify::<Value>(token, TYP).is_ok()
}

fn signer(keys: &SigningKeys) -> SigningKeyId {
    jwt::Unverified::parse(&sign(keys)).expect("a token").kid().parse().expect("a kid")
}

fn published(keys: &SigningKeys) -> Vec<String> {
    let set: Value = serde_json::from_slice(&keys.jwks().body).expect("JSON");
    set["keys"].as_array().expect("a list").iter().map(|key| key["kid"].as_str().expect("a kid").to_owned()).collect()
}

async fn stored(db: &Db) -> Vec<SigningKey> {
    db.read(SigningKeys::list).await.expect("reads")
}

/// Made ahead, so that only the transactions race.
fn prepared(db: &Db) -> Vec<NewKey> {
    (0..8).map(|_| NewKey::seal(db.ids().next(), test_key(), &keyring(1, None)).expect("seals")).collect()
}

async fn nodes_that_start_together_make_one_key(test: TestDb) {
    let db = &test.db;
    let starts: Vec<_> = prepared(db).into_iter().map(|new| db.write(move |tx| publish_first(tx, &new))).collect();
    for start in starts {
        start.await.expect("starts");
    }
    assert_eq!(stored(db).await.len(), 1);

    let (one, other) = (started(db).await, started(&test.another_node().await).await);
    assert!(verifies(&other, &sign(&one)) && verifies(&one, &sign(&other)));
    assert_eq!(one.jwks().etag, other.jwks().etag);
}

async fn a_rotated_key_is_published_then_signs_and_the_old_one_retires(test: TestDb) {
    let db = &test.db;
    let (keys, clock) = (started(db).await, db.clock().clone());
    let (old, old_token) = (signer(&keys), sign(&keys));

    let new = rotate(&keys, db).await.key;
    assert_eq!(published(&keys), [old.to_string(), new.kid.to_string()]);
    assert_eq!(new.active_from, new.created_at.plus(PUBLICATION_DELAY));
    clock.advance_to(new.active_from.minus(MINUTE));
    assert_eq!(signer(&keys), old);
    clock.advance_to(new.active_from);
    assert_eq!(signer(&keys), new.kid);

    let end = new.active_from.plus(LONGEST);
    assert_eq!(stored(db).await[0].retires_at, Some(end));
    clock.advance_to(end.minus(MINUTE));
    assert!(verifies(&keys, &old_token));
    assert_eq!(keys.prune(db).await.expect("prunes"), 0);
    clock.advance_to(end);
    assert!(!verifies(&keys, &old_token));
    assert_eq!(published(&keys), [new.kid.to_string()]);
    assert_eq!(keys.prune(db).await.expect("prunes"), 1);
    assert_eq!(stored(db).await.len(), 1);
}

async fn one_rotation_runs_at_a_time(test: TestDb) {
    let db = &test.db;
    let keys = started(db).await;
    // Several rounds, because the first ones are spread out while connections are being opened.
    for round in 1..=5 {
        let new = race_to_rotate(&keys, db).await;
        assert_eq!((stored(db).await.len(), published(&keys).len()), (1 + round, 1 + round));

        let unannounced = |_: &mut Tx<'_>, _: &SigningKey| -> Result<()> { panic!("announced again") };
        let again = keys.rotate(db, LONGEST, unannounced).await.expect("finds the one under way");
        assert_eq!((again.key, again.started), (new.clone(), false));
        db.clock().advance_to(new.active_from);
    }
}

/// Eight rotations at once: exactly one starts, and all answer with its key.
async fn race_to_rotate(keys: &SigningKeys, db: &Db) -> SigningKey {
    let attempt = |new: NewKey| {
        let keys = keys.clone();
        db.write(move |tx| keys.rotate_in(tx, &new, LONGEST))
    };
    let attempts: Vec<_> = prepared(db).into_iter().map(attempt).collect();
    let mut rotations = Vec::new();
    for attempt in attempts {
        rotations.push(attempt.await.expect("rotates"));
    }
    assert_eq!(rotations.iter().filter(|rotation| rotation.started).count(), 1);
    assert!(rotations.iter().all(|rotation| rotation.key == rotations[0].key));
    rotations.swap_remove(0).key
}

async fn another_node_learns_of_a_rotation_by_reloading(test: TestDb) {
    let db = &test.db;
    let (one, other) = (started(db).await, started(db).await);
    let new = rotate(&one, db).await.key;
    assert_eq!((published(&one).len(), published(&other).len()), (2, 1));
    other.reload(db).await.expect("reloads");
    assert_eq!(one.jwks().etag, other.jwks().etag);
    db.clock().advance_to(new.active_from);
    assert!(verifies(&other, &sign(&one)));
}

async fn a_rotation_that_cannot_be_announced_did_not_happen(test: TestDb) {
    let db = &test.db;
    let keys = started(db).await;
    let before = keys.jwks().etag.clone();
    keys.rotate(db, LONGEST, |_, _| Err(Error::internal("no outbox"))).await.expect_err("the announcement failed");
    assert_eq!((stored(db).await.len(), &keys.jwks().etag), (1, &before));
    assert_eq!(stored(db).await[0].retires_at, None);
}

async fn no_reload_undoes_a_rotation(test: TestDb) {
    let db = &test.db;
    let keys = started(db).await;
    let generation = *keys.generation();
    let before = db.read(rows::unretired).await.expect("reads");
    rotate(&keys, db).await;
    assert!(!keys.replace(generation, before).expect("opens"));
    assert_eq!(published(&keys).len(), 2);
    keys.reload(db).await.expect("reloads");
    assert_eq!(published(&keys).len(), 2);
}

async fn a_new_master_key_takes_over(test: TestDb) {
    let db = &test.db;
    let token = sign(&started(db).await);
    let stranger = SigningKeys::new(keyring(2, None), db.clock().clone());
    assert_eq!(stranger.ensure_first(db).await.expect_err("cannot open").code(), kernel::Code::Internal);

    let changing = SigningKeys::new(keyring(2, Some(1)), db.clock().clone());
    assert_eq!(changing.reseal(db).await.expect("reseals"), 1);
    assert_eq!(changing.reseal(db).await.expect("nothing to do"), 0);
    stranger.reload(db).await.expect("opens now");
    assert!(verifies(&stranger, &token));
}

async fn a_token_of_another_type_or_without_a_key_is_refused(test: TestDb) {
    let db = &test.db;
    let empty = node(db);
    assert!(empty.sign(TYP, &json!({})).is_err());
    let keys = started(db).await;
    assert!(!verifies(&empty, &sign(&keys)));
    assert_eq!(keys.verify::<Value>(&sign(&keys), "refresh+jwt"), Err(InvalidToken));
}
