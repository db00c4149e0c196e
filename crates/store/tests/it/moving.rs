//! An embedded store moved into PostgreSQL: random rows of every type, numbering, and what must be refused.

use std::sync::{Arc, Mutex};

use kernel::{Clock, Code, Entropy, Result, Secret};
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use store::{
    DatabaseUrl, Db, EngineName, Limits, Migration, MoveOrder, MoveProgress, Moved, RawCell, RawTable, ToArg as _, Tx,
    args, testing::TestDb,
};

use crate::{
    postgres_engine::{open, run},
    schema::{MIGRATIONS, add_name, names},
};

type Thing = (String, Option<i64>, Option<f64>, Option<bool>, Option<String>, Option<Vec<u8>>);

const THING: &str = "INSERT INTO things (id, number, ratio, flag, body, data) VALUES ($1, $2, $3, $4, $5, $6)";
const THINGS: &str = "SELECT id, number, ratio, flag, body, data FROM things ORDER BY id";
const ADD_FACT: &str = "INSERT INTO facts (name) VALUES ($1)";
const FACTS: &str = "SELECT name, position FROM facts ORDER BY position, name";
const NOTE: &str = "INSERT INTO notes (id, thing, parent) VALUES ($1, $2, $3)";

/// All that an empty test database holds: the record of migrations, without one.
const RECORD: [&str; 1] = ["schema_migrations"];

fn order(source: &TestDb, migrations: &'static [Migration]) -> MoveOrder {
    let DatabaseUrl::Sqlite(path) = &source.url else { panic!("{:?} is not embedded", source.url) };
    MoveOrder { source: path.clone(), migrations, clear: false, watcher: Arc::new(|_| ()), finish: |_| Ok(()) }
}

async fn embedded(migrations: &'static [Migration]) -> TestDb {
    TestDb::create(EngineName::Sqlite, migrations, Clock::system(), Entropy::os()).await
}

async fn things(db: &Db) -> Vec<Thing> {
    db.snapshot(|tx| tx.all(THINGS, &[])).await.expect("readable")
}

/// Texts of anything but NUL, with plenty of what `COPY` gives a meaning to.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[\\\\\t\r\n.Nx\"',;]{0,8}", "\\PC{0,20}", any::<String>().prop_map(|text| text.replace('\0', ""))]
}

fn thing() -> impl Strategy<Value = Thing> {
    let number = prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), any::<i64>()];
    let ratio = prop_oneof![
        Just(0.0),
        Just(f64::MAX),
        Just(f64::MIN),
        Just(f64::MIN_POSITIVE),
        Just(5e-324),
        Just(f64::INFINITY),
        Just(1.0 / 3.0),
        any::<f64>().prop_filter("SQLite has no NaN", |ratio| !ratio.is_nan()),
    ];
    let data = prop::collection::vec(any::<u8>(), 0..40);
    (
        Just(String::new()),
        prop::option::of(number),
        prop::option::of(ratio),
        any::<Option<bool>>(),
        prop::option::of(text()),
        prop::option::of(data),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn random_rows_of_every_type_arrive_as_they_were() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let drawn = prop::collection::vec(thing(), 1_500).new_tree(&mut runner).expect("rows").current();
    let source = embedded(MIGRATIONS).await;
    let stored = source.db.write(move |tx| {
        for (n, (_, number, ratio, flag, body, data)) in drawn.iter().enumerate() {
            tx.run(THING, &args![format!("{n:05}"), number, ratio, flag, body, data])?;
        }
        for name in ["first", "second"] {
            tx.run(ADD_FACT, &args![name])?;
        }
        tx.run(NOTE, &args!["z", "00000", None::<String>])?;
        tx.run(NOTE, &args!["a", None::<String>, "z"])
    });
    stored.await.expect("stored");
    let target = TestDb::empty(EngineName::Postgres).await;
    let told = Arc::new(Mutex::new(Vec::<MoveProgress>::new()));
    let heard = Arc::clone(&told);
    let watcher = Arc::new(move |progress: &MoveProgress| heard.lock().expect("unpoisoned").push(progress.clone()));
    let moved = target.db.move_in(MoveOrder { watcher, ..order(&source, MIGRATIONS) }).await.expect("moved");
    assert_eq!(moved, Moved { tables: 7, rows: 1_500 + 2 + 1 + 2 });
    assert_eq!(things(&target.db).await, things(&source.db).await);
    assert!(target.db.is_migrated(MIGRATIONS).await.expect("asked"));
    let told = told.lock().expect("unpoisoned").clone();
    assert!(told.iter().any(|one| one.table == "things" && one.rows == 1_500 && one.of == 1_500 && one.compared));
    assert_eq!(told.last().map(|last| (last.all_rows, last.of_all)), Some((1_505, 1_505)));
    target.db.exec_one(ADD_FACT, &args!["third"]).await.expect("numbering goes on");
    let facts: Vec<(String, i64)> = target.db.read(|tx| tx.all(FACTS, &[])).await.expect("facts");
    assert_eq!(facts.iter().map(|fact| fact.1).collect::<Vec<_>>(), [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_rows_of_every_type_pass_between_the_engines() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[8; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let drawn = prop::collection::vec(thing(), 300).new_tree(&mut runner).expect("rows").current();
    let stores = [EngineName::Sqlite, EngineName::Postgres, EngineName::Sqlite]
        .map(|engine| TestDb::create(engine, MIGRATIONS, Clock::system(), Entropy::os()));
    let [first, second, third] = stores;
    let (first, second, third) = (first.await, second.await, third.await);
    let stored = first.db.write(move |tx| {
        for (n, (_, number, ratio, flag, body, data)) in drawn.iter().enumerate() {
            tx.run(THING, &args![format!("{n:05}"), number, ratio, flag, body, data])?;
        }
        Ok(())
    });
    stored.await.expect("stored");
    for (from, to) in [(&first, &second), (&second, &third)] {
        let read = from.db.scan(|tx| {
            let table = raw_things(tx)?;
            let (columns, mut rows) = (table.columns().map(str::to_owned).collect::<Vec<_>>(), Vec::new());
            for n in 0..300 {
                tx.each_raw(&table, ("id", format!("{n:05}").to_arg()), "id", &mut |row| {
                    rows.push(row);
                    Ok(())
                })?;
            }
            Ok((columns, rows))
        });
        let (columns, rows) = read.await.expect("read");
        let put = to.db.write(move |tx| {
            let table = raw_things(tx)?.in_order(&columns).expect("the same columns");
            tx.insert_raw(&table, &rows)
        });
        put.await.expect("put in");
        assert_eq!(things(&to.db).await, things(&from.db).await);
    }
    let children = first.db.read(|tx| tx.raw_children("things")).await.expect("asked");
    assert_eq!(
        (children, second.db.read(|tx| tx.raw_children("things")).await.expect("asked")),
        (vec!["notes".to_owned()], vec!["notes".to_owned()])
    );
    let wrong = first.db.write(|tx| {
        let table = raw_things(tx)?;
        let text = RawCell::Text("x".into());
        let row = vec![RawCell::Text("new".into()), text, RawCell::Null, RawCell::Null, RawCell::Null, RawCell::Null];
        tx.insert_raw(&table, &[row])
    });
    assert!(wrong.await.is_err(), "a text where a number belongs");
}

fn raw_things(tx: &mut Tx<'_>) -> Result<RawTable> {
    let found = tx.raw_tables()?.into_iter().find(|table| table.name() == "things");
    Ok(found.expect("a table"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_with_anything_in_it_is_refused_unless_it_may_be_cleared() {
    let source = embedded(MIGRATIONS).await;
    source.db.write(|tx| add_name(tx, "ada")).await.expect("stored");
    let target = TestDb::create(EngineName::Postgres, MIGRATIONS, Clock::system(), Entropy::os()).await;
    target.db.write(|tx| add_name(tx, "eve")).await.expect("stored");
    let refused = target.db.move_in(order(&source, MIGRATIONS)).await.expect_err("refused");
    assert_eq!(refused.code(), Code::Conflict);
    assert_eq!(names(&target.db).await, ["eve"]);
    target.db.move_in(MoveOrder { clear: true, ..order(&source, MIGRATIONS) }).await.expect("moved");
    assert_eq!(names(&target.db).await, ["ada"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_fails_and_one_that_is_only_tried_leave_nothing() {
    let source = embedded(MIGRATIONS).await;
    source.db.write(|tx| add_name(tx, "ada")).await.expect("stored");
    let target = TestDb::empty(EngineName::Postgres).await;
    let path = order(&source, MIGRATIONS).source;
    let estimate = target.db.try_move_in(&path, MIGRATIONS, false).await.expect("estimated");
    assert_eq!((estimate.tables, estimate.rows), (7, 2));
    assert_eq!(target.db.table_names().await.expect("asked"), RECORD);
    let finish = |_: &mut store::Tx<'_>| Err(kernel::Error::internal("planted"));
    target.db.move_in(MoveOrder { finish, ..order(&source, MIGRATIONS) }).await.expect_err("fails");
    assert_eq!(target.db.table_names().await.expect("asked"), RECORD);
}

/// The same table, but PostgreSQL changes what goes in.
const CHANGING: &[Migration] = &[Migration::per_engine(
    1,
    "changing",
    "CREATE TABLE names (name {key} PRIMARY KEY, n {int} NOT NULL) {strict};",
    "CREATE TABLE names (name {key} PRIMARY KEY, n {int} NOT NULL) {strict};
     CREATE FUNCTION louder() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.name := upper(NEW.name); RETURN NEW; END';
     CREATE TRIGGER louder BEFORE INSERT ON names FOR EACH ROW EXECUTE FUNCTION louder();",
)];

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_arrive_as_it_was_is_noticed() {
    let source = embedded(CHANGING).await;
    source.db.write(|tx| add_name(tx, "quiet")).await.expect("stored");
    let target = TestDb::empty(EngineName::Postgres).await;
    let refused = target.db.move_in(order(&source, CHANGING)).await.expect_err("noticed");
    assert_eq!(refused.public(), "The rows of names are not the same on both sides. Nothing was kept.");
    assert_eq!(target.db.table_names().await.expect("asked"), RECORD);
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_are_tried() {
    let target = TestDb::empty(EngineName::Postgres).await;
    target.db.check_rights().await.expect("the owner may");
    assert_eq!(target.db.table_names().await.expect("asked"), RECORD);
    let role = format!("may_read_only_{}", std::process::id());
    run(&target.url, &format!("CREATE ROLE {role} LOGIN"));
    let DatabaseUrl::Postgres(url) = &target.url else { panic!("{:?} is not PostgreSQL", target.url) };
    let (_, rest) = url.expose().split_once('@').expect("a user");
    let url = DatabaseUrl::Postgres(Secret::new(format!("postgres://{role}@{rest}")));
    let db = open(url, Limits::default()).await.expect("it may connect");
    let refused = db.check_rights().await.expect_err("it may not create tables");
    db.close().await;
    run(&target.url, &format!("DROP ROLE {role}"));
    assert!(refused.public().contains("permission denied for schema public"), "{refused:?}");
}
