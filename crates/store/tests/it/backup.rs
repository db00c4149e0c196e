//! Backups: made under load, restored on both engines, compared; and everything that must be refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use kernel::{Clock, Code, Entropy};
use store::{
    Attached, AttachedCounts, AttachedSource, AttachedTarget, BackupKey, Db, EngineName, Limits, Migration, Options,
    args, on_both_engines, read_backup_info, restore, testing::TestDb,
};
use tempfile::TempDir;

use crate::schema::{MIGRATIONS, add_entry, add_name, entries, names};

on_both_engines!(MIGRATIONS:
    a_backup_under_load_holds_all_that_was_acknowledged,
    rows_come_back_as_they_were,
    nobody_but_its_owner_reads_a_backup,
    a_failed_restore_leaves_nothing,
    unfit_files_and_targets_are_refused,
    an_older_backup_is_brought_up_to_date,
    what_lies_beside_the_database_is_carried_along,
    what_cannot_be_kept_beside_it_leaves_nothing,
);

fn key() -> BackupKey {
    BackupKey::new([7; 32])
}

const ENGINES: [EngineName; 2] = [EngineName::Sqlite, EngineName::Postgres];

struct Shelf(TempDir);

impl Shelf {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let found = fs::read_dir(self.0.path()).expect("the folder is there");
        let mut names: Vec<_> =
            found.map(|entry| entry.expect("readable").file_name().into_string().expect("text")).collect();
        names.sort_unstable();
        names
    }
}

async fn a_backup_under_load_holds_all_that_was_acknowledged(test: TestDb) {
    let shelf = Shelf::new();
    let path = shelf.path("backup");
    let load = Load::start(&test.db);
    load.wait_for(1_000).await;
    let before = load.acknowledged();
    let info = test.db.backup_to(&path, &[("master_key", "4711")], None, &key(), MIGRATIONS).await.expect("backed up");
    let during = load.acknowledged().len() - before.len();
    load.wait_for(before.len() + 500).await;
    load.stop().await;

    assert_eq!((info.engine.as_str(), info.schema), (test.db.engine().to_string().as_str(), 3));
    assert_eq!(info.entries["master_key"], "4711");
    assert_eq!(read_backup_info(&path).await.expect("readable"), info);
    assert_eq!(shelf.names(), ["backup"], "nothing but the finished file");

    let all: BTreeSet<i64> = entries(&test.db).await.into_iter().collect();
    let mut restored = Vec::new();
    for engine in ENGINES {
        let target = TestDb::empty(engine).await;
        restore(&path, &target.db, None, &[key()], MIGRATIONS).await.expect("restored");
        let found = entries(&target.db).await;
        let distinct: BTreeSet<i64> = found.iter().copied().collect();
        assert_eq!(found.len(), distinct.len());
        assert!(before.is_subset(&distinct), "acknowledged before the backup but not in it, on {engine}");
        assert!(distinct.is_subset(&all), "in the backup but never stored, on {engine}");
        restored.push(found);
    }
    assert_eq!(restored[0], restored[1]);
    println!("{} acknowledged before, {during} during, {} in the backup", before.len(), restored[0].len());
}

const THINGS: &str = "SELECT id, number, ratio, flag, body, data FROM things ORDER BY id";
const FACTS: &str = "SELECT name, position FROM facts ORDER BY position, name";
const HEAD: &str = "SELECT last FROM fact_head";
const ADD_FACT: &str = "INSERT INTO facts (name) VALUES ($1)";

type Thing = (String, Option<i64>, Option<f64>, Option<bool>, Option<String>, Option<Vec<u8>>);

#[derive(Debug, PartialEq)]
struct Content {
    things: Vec<Thing>,
    notes: Vec<(String, Option<String>, Option<String>)>,
    facts: Vec<(String, i64)>,
    head: (i64,),
}

async fn content(db: &Db) -> Content {
    let content = db.snapshot(|tx| {
        Ok(Content {
            things: tx.all(THINGS, &[])?,
            notes: tx.all("SELECT id, thing, parent FROM notes ORDER BY id", &[])?,
            facts: tx.all(FACTS, &[])?,
            head: tx.one(HEAD, &[])?,
        })
    });
    content.await.expect("readable")
}

/// Values at the edges of their types, references in both directions, numbers given by the engine.
async fn rows_come_back_as_they_were(test: TestDb) {
    let filled = test.db.write(|tx| {
        const THING: &str = "INSERT INTO things (id, number, ratio, flag, body, data) VALUES ($1, $2, $3, $4, $5, $6)";
        const NOTE: &str = "INSERT INTO notes (id, thing, parent) VALUES ($1, $2, $3)";
        tx.exec(THING, &args!["empty", None::<i64>, None::<f64>, None::<bool>, None::<String>, None::<Vec<u8>>])?;
        tx.exec(THING, &args!["edge", i64::MIN, -0.0, false, "", Vec::<u8>::new()])?;
        for n in 0..1_200_i64 {
            let body = format!(r#"{{"n": {n},  "ä": "it's \\ 😀"}}"#);
            tx.exec(THING, &args![format!("{n:04}"), i64::MAX - n, n as f64, n % 2 == 0, body, vec![n as u8; 2_000]])?;
        }
        tx.exec(NOTE, &args!["z-root", "edge", None::<String>])?;
        tx.exec(NOTE, &args!["a-leaf", None::<String>, "z-root"])?;
        for name in ["first", "second", "third"] {
            tx.exec(ADD_FACT, &args![name])?;
        }
        Ok(())
    });
    filled.await.expect("stored");
    let original = content(&test.db).await;
    assert_eq!(original.facts.iter().map(|fact| fact.1).collect::<Vec<_>>(), [1, 2, 3]);

    let shelf = Shelf::new();
    test.db.backup_to(&shelf.path("backup"), &[], None, &key(), MIGRATIONS).await.expect("backed up");
    for engine in ENGINES {
        let target = TestDb::empty(engine).await;
        let restored = restore(&shelf.path("backup"), &target.db, None, &[key()], MIGRATIONS).await.expect("restored");
        assert_eq!(content(&target.db).await, original, "on {engine}");
        assert_eq!(restored.rows, 1_202 + 2 + 3 + 1);
        assert!(target.db.is_migrated(MIGRATIONS).await.expect("readable"));
        // The other engine numbers in another way and starts where its own record says.
        if engine == test.db.engine() {
            target.db.exec_one(ADD_FACT, &args!["fourth"]).await.expect("numbering goes on");
            assert_eq!(content(&target.db).await.facts.last(), Some(&("fourth".to_owned(), 4)), "on {engine}");
        }
        // From here to the next place, and nothing is lost on the way.
        let again = format!("again from {engine}");
        let before = content(&target.db).await;
        target.db.backup_to(&shelf.path(&again), &[], None, &key(), MIGRATIONS).await.expect("backed up again");
        let last = TestDb::empty(test.db.engine()).await;
        restore(&shelf.path(&again), &last.db, None, &[key()], MIGRATIONS).await.expect("restored again");
        assert_eq!(content(&last.db).await, before);
    }
}

/// It holds what the database holds, and may be made in a folder that everybody can look into.
async fn nobody_but_its_owner_reads_a_backup(test: TestDb) {
    let shelf = Shelf::new();
    test.db.backup_to(&shelf.path("backup"), &[], None, &key(), MIGRATIONS).await.expect("a backup");
    let mode = fs::metadata(shelf.path("backup")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

async fn a_failed_restore_leaves_nothing(test: TestDb) {
    test.db.write(|tx| add_name(tx, "kept")).await.expect("stored");
    let shelf = Shelf::new();
    test.db.backup_to(&shelf.path("good"), &[], None, &key(), MIGRATIONS).await.expect("backed up");
    fs::copy(shelf.path("good"), shelf.path("bad")).expect("copied");
    // Whole as a file, but with a row at its end that the schema does not allow.
    let file = rusqlite::Connection::open(shelf.path("bad")).expect("opens");
    file.execute_batch(
        "PRAGMA ignore_check_constraints = ON; INSERT INTO totals VALUES (1, 1); INSERT INTO entries VALUES (1, -1)",
    )
    .expect("tampered with");
    drop(file);
    for engine in ENGINES {
        let target = TestDb::empty(engine).await;
        restore(&shelf.path("bad"), &target.db, None, &[key()], MIGRATIONS).await.expect_err("refused");
        // So empty that it takes the good one.
        restore(&shelf.path("good"), &target.db, None, &[key()], MIGRATIONS).await.expect("restored");
        assert_eq!(names(&target.db).await, ["kept"]);
        assert!(entries(&target.db).await.is_empty());
    }
}

async fn unfit_files_and_targets_are_refused(test: TestDb) {
    test.db.write(|tx| (0..2_000).try_for_each(|id| add_entry(tx, id))).await.expect("stored");
    let shelf = Shelf::new();
    let path = shelf.path("backup");
    test.db.backup_to(&path, &[], None, &key(), MIGRATIONS).await.expect("backed up");

    let error = test.db.backup_to(&path, &[], None, &key(), MIGRATIONS).await.expect_err("the file exists");
    assert_eq!(error.code(), Code::Conflict);
    let error = restore(&path, &test.db, None, &[key()], MIGRATIONS).await.expect_err("the target is in use");
    assert!(error.code() == Code::Conflict && error.public().contains("not empty"), "{error}");
    assert_eq!(entries(&test.db).await.len(), 2_000);

    let target = TestDb::empty(test.db.engine()).await;
    let refused = async |path: &Path, list: &'static [Migration], words: &str| {
        let error = restore(path, &target.db, None, &[key()], list).await.expect_err("refused");
        assert!(error.public().contains(words), "{error:?}");
    };
    refused(&path, &MIGRATIONS[..2], "newer release").await;
    refused(&shelf.path("missing"), MIGRATIONS, "is not there").await;
    fs::write(shelf.path("junk"), "no database at all").expect("written");
    refused(&shelf.path("junk"), MIGRATIONS, "is not a backup").await;
    let plain = rusqlite::Connection::open(shelf.path("plain")).expect("opens");
    plain.execute_batch("CREATE TABLE t (id INTEGER)").expect("made");
    refused(&shelf.path("plain"), MIGRATIONS, "is not a backup").await;
    let whole = fs::read(&path).expect("readable");
    let line = whole.windows(17).rposition(|window| window == b"\ntenantry-backup ").expect("its last line");
    fs::write(shelf.path("without"), &whole[..line]).expect("written");
    refused(&shelf.path("without"), MIGRATIONS, "its checksum does not fit").await;
    let mut misnamed = whole.clone();
    let table = whole.windows(13).position(|window| window == b"CREATE TABLE ").expect("its tables");
    misnamed[table + 7] = b'!';
    fs::write(shelf.path("misnamed"), misnamed).expect("written");
    refused(&shelf.path("misnamed"), MIGRATIONS, "is damaged or was changed").await;
    let mut damaged = whole;
    let half = damaged.len() / 2;
    damaged[half..half + 4_096].fill(0x5A);
    fs::write(shelf.path("damaged"), damaged).expect("written");
    refused(&shelf.path("damaged"), MIGRATIONS, "is damaged").await;
    let other = [BackupKey::new([8; 32])];
    let error = restore(&path, &target.db, None, &other, MIGRATIONS).await.expect_err("made with another key");
    assert!(error.public().contains("checksum"), "{error:?}");
    let keys = [BackupKey::new([8; 32]), key()];
    restore(&path, &target.db, None, &keys, MIGRATIONS).await.expect("the target is still empty");
    assert_eq!(entries(&target.db).await.len(), 2_000);
}

async fn an_older_backup_is_brought_up_to_date(test: TestDb) {
    let old = TestDb::create(test.db.engine(), &MIGRATIONS[..1], Clock::system(), Entropy::os()).await;
    old.db.write(|tx| add_name(tx, "old")).await.expect("stored");
    let shelf = Shelf::new();
    let info = old.db.backup_to(&shelf.path("old"), &[], None, &key(), MIGRATIONS).await.expect("backed up");
    assert_eq!(info.schema, 1);
    // A folder that does not even exist yet will do.
    let url = format!("sqlite:{}", shelf.path("new/data.db").display()).parse().expect("a URL");
    let limits = Limits::default();
    let fresh = Db::open(Options { url, clock: Clock::system(), entropy: Entropy::os(), limits }).await.expect("opens");
    let target = TestDb::empty(EngineName::Postgres).await;
    for db in [&fresh, &target.db] {
        restore(&shelf.path("old"), db, None, &[key()], MIGRATIONS).await.expect("restored");
        assert!(db.is_migrated(MIGRATIONS).await.expect("readable"));
        assert_eq!(names(db).await, ["old"]);
        assert_eq!(content(db).await.head, (0,), "what later migrations put in is there");
    }
    fresh.close().await;
}

/// A shelf of bytes by name.
#[derive(Default)]
struct Beside {
    bytes: Mutex<BTreeMap<String, Vec<u8>>>,
    refused: Option<&'static str>,
}

impl Beside {
    fn all(&self) -> BTreeMap<String, Vec<u8>> {
        self.bytes.lock().expect("nobody panicked").clone()
    }
}

impl AttachedSource for Beside {
    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Read + '_>>> {
        Ok(self.all().remove(name).map(|bytes| Box::new(io::Cursor::new(bytes)) as Box<dyn Read>))
    }
}

impl AttachedTarget for Beside {
    fn accepts(&self, name: &str) -> bool {
        self.refused != Some(name)
    }

    fn keep(&self, name: &str, bytes: &mut dyn Read) -> io::Result<()> {
        let mut kept = Vec::new();
        bytes.read_to_end(&mut kept)?;
        self.bytes.lock().expect("nobody panicked").insert(name.to_owned(), kept);
        Ok(())
    }
}

const NAMES: &str = "SELECT name FROM names ORDER BY name";

async fn backed_up_with(test: &TestDb, path: &Path, source: Option<Arc<dyn AttachedSource>>) -> AttachedCounts {
    for name in ["empty", "gone", "large", "piece"] {
        test.db.write(move |tx| add_name(tx, name)).await.expect("stored");
    }
    let attached = Some(Attached { names: NAMES, source });
    test.db.backup_to(path, &[], attached, &key(), MIGRATIONS).await.expect("backed up").attached
}

fn bytes_beside() -> BTreeMap<String, Vec<u8>> {
    let large = (0..2_500_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    [("empty", vec![]), ("piece", vec![7; 1 << 20]), ("large", large), ("of no row", vec![1])]
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .into()
}

async fn what_lies_beside_the_database_is_carried_along(test: TestDb) {
    let shelf = Shelf::new();
    let source = Arc::new(Beside { bytes: Mutex::new(bytes_beside()), refused: None });
    let counts = backed_up_with(&test, &shelf.path("with"), Some(source)).await;
    assert_eq!(counts, AttachedCounts { held: 3, missing: 1, left_out: 0 });
    assert_eq!(read_backup_info(&shelf.path("with")).await.expect("readable").attached, counts);
    let mut expected = bytes_beside();
    expected.remove("of no row");
    for engine in ENGINES {
        let (target, beside) = (TestDb::empty(engine).await, Arc::new(Beside::default()));
        let restored = restore(&shelf.path("with"), &target.db, Some(beside.clone()), &[key()], MIGRATIONS).await;
        assert_eq!(restored.expect("restored").attached, 3);
        assert!(beside.all() == expected, "on {engine}");
        let again = Arc::new(Beside::default());
        let error = restore(&shelf.path("with"), &target.db, Some(again.clone()), &[key()], MIGRATIONS).await;
        assert_eq!(error.expect_err("in use").code(), Code::Conflict);
        assert!(again.all().is_empty(), "nothing is put beside a database that is in use");
    }
    let other = TestDb::create(test.db.engine(), MIGRATIONS, Clock::system(), Entropy::os()).await;
    let counts = backed_up_with(&other, &shelf.path("without"), None).await;
    assert_eq!(counts, AttachedCounts { held: 0, missing: 0, left_out: 4 });
    let target = TestDb::empty(test.db.engine()).await;
    restore(&shelf.path("without"), &target.db, None, &[key()], MIGRATIONS).await.expect("restored");
}

async fn what_cannot_be_kept_beside_it_leaves_nothing(test: TestDb) {
    let shelf = Shelf::new();
    let source = Arc::new(Beside { bytes: Mutex::new(bytes_beside()), refused: None });
    backed_up_with(&test, &shelf.path("with"), Some(source)).await;
    let mut bytes = fs::read(shelf.path("with")).expect("readable");
    let place = bytes.windows(64).position(|window| window == [7; 64]).expect("the bytes are in it");
    bytes[place] ^= 1;
    fs::write(shelf.path("damaged"), bytes).expect("written");
    let target = TestDb::empty(test.db.engine()).await;
    // The last in the order of names, so that the others would have been kept by then.
    for (file, refused, words) in [("with", Some("piece"), "whose name"), ("damaged", None, "checksum")] {
        let beside = Arc::new(Beside { bytes: Mutex::default(), refused });
        let error = restore(&shelf.path(file), &target.db, Some(beside.clone()), &[key()], MIGRATIONS).await;
        let error = error.expect_err("refused");
        assert!(error.public().contains(words), "{error:?}");
        assert!(beside.all().is_empty());
    }
    let error = restore(&shelf.path("with"), &target.db, None, &[key()], MIGRATIONS).await;
    assert!(error.expect_err("refused").public().contains("whose name"));
    let beside = Arc::new(Beside::default());
    restore(&shelf.path("with"), &target.db, Some(beside), &[key()], MIGRATIONS).await.expect("still empty");
}

/// Callers that write until they are told to stop.
struct Load {
    callers: Vec<tokio::task::JoinHandle<()>>,
    acknowledged: Arc<Mutex<BTreeSet<i64>>>,
    count: tokio::sync::watch::Receiver<usize>,
    stop: Arc<AtomicBool>,
}

impl Load {
    fn start(db: &Db) -> Self {
        let (next, stop) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
        let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
        let (sender, count) = tokio::sync::watch::channel(0);
        let sender = Arc::new(sender);
        let callers = (0..32).map(|_| {
            let (db, next, stop) = (db.clone(), next.clone(), stop.clone());
            let (acknowledged, sender) = (acknowledged.clone(), sender.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    db.write(move |tx| add_entry(tx, id)).await.expect("a backup does not disturb writers");
                    let mut acknowledged = acknowledged.lock().expect("not poisoned");
                    acknowledged.insert(id);
                    sender.send_replace(acknowledged.len());
                }
            })
        });
        Self { callers: callers.collect(), acknowledged, count, stop }
    }

    fn acknowledged(&self) -> BTreeSet<i64> {
        self.acknowledged.lock().expect("not poisoned").clone()
    }

    async fn wait_for(&self, count: usize) {
        self.count.clone().wait_for(|found| *found >= count).await.expect("callers go on");
    }

    async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for caller in self.callers {
            caller.await.expect("the caller lives");
        }
    }
}
