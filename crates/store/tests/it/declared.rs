//! Rows that are declared once: their columns, typed texts, JSON, and the small verbs of a transaction.

use std::collections::BTreeMap;

use kernel::{Code, Locale};
use store::{Json, Migration, args, on_both_engines, row, sql, testing::TestDb, text_enum};

on_both_engines!(MIGRATIONS:
    a_declared_row_is_read_and_returned,
    what_does_not_fit_the_declaration_is_an_internal_error,
    typed_columns_go_in_by_the_hundred,
    the_small_verbs_say_what_happened,
);

const MIGRATIONS: &[Migration] = &[Migration::shared(
    1,
    "shelves",
    "CREATE TABLE shelves (id {key} PRIMARY KEY, label TEXT NOT NULL, size TEXT NOT NULL, tags TEXT NOT NULL, \
     notes TEXT, language TEXT NOT NULL, width {int} NOT NULL, height {int} NOT NULL) {strict};",
)];

text_enum! {
    /// How much fits in.
    wire pub enum Size {
        Small = "small",
        Large = "extra-large",
    }
}

#[derive(Debug, PartialEq)]
struct Extent {
    width: i64,
    height: i64,
}

row! { Extent = "shelves" { width, height } }

#[derive(Debug, PartialEq)]
struct Shelf {
    id: String,
    name: String,
    size: Size,
    tags: Vec<String>,
    notes: Option<BTreeMap<String, i64>>,
    language: Locale,
    extent: Extent,
    area: i64,
    books: Vec<String>,
}

row! {
    Shelf = "shelves" {
        id,
        name: "label",
        size,
        tags as Json,
        notes: "notes" as Json,
        language,
        extent of Extent,
        area = "shelves.width * shelves.height",
    }
    books: Vec::new(),
}

type NewShelf = (String, &'static str, Size, Json<Vec<&'static str>>, Option<Json<i64>>, Locale, i64, i64);

const NAMES: [&str; 8] = ["id", "label", "size", "tags", "notes", "language", "width", "height"];
const INSERT: &str = "INSERT INTO shelves (id, label, size, tags, notes, language, width, height) \
                      SELECT id, label, size, tags, notes, language, width, height FROM {rows} WHERE true";

fn shelf(number: i64) -> NewShelf {
    let size = if number % 2 == 0 { Size::Small } else { Size::Large };
    (format!("{number:04}"), "Top", size, Json(vec!["wood", "ä"]), None, Locale::ENGLISH, number, 2)
}

async fn store(test: &TestDb, number: i64) {
    test.db.write(move |tx| tx.insert_all(INSERT, NAMES, &[shelf(number)])).await.expect("stored");
}

async fn a_declared_row_is_read_and_returned(test: TestDb) {
    store(&test, 3).await;
    let notes = Json(BTreeMap::from([("a", 1)]));
    let returned = test.db.write(move |tx| {
        tx.one::<Shelf>(
            sql!("UPDATE shelves SET notes = $1 WHERE id = '0003' RETURNING ", Shelf::COLUMNS),
            &args![notes],
        )
    });
    let returned = returned.await.expect("a row");
    let expected = Shelf {
        id: "0003".into(),
        name: "Top".into(),
        size: Size::Large,
        tags: vec!["wood".into(), "ä".into()],
        notes: Some(BTreeMap::from([("a".into(), 1)])),
        language: Locale::ENGLISH,
        extent: Extent { width: 3, height: 2 },
        area: 6,
        books: Vec::new(),
    };
    assert_eq!(returned, expected);
    let read = test.db.get_one::<Shelf>(sql!("SELECT ", Shelf::COLUMNS, " FROM shelves"), &[]).await;
    assert_eq!(read.expect("readable"), Some(expected));
}

async fn what_does_not_fit_the_declaration_is_an_internal_error(test: TestDb) {
    for spoil in
        ["UPDATE shelves SET size = 'medium'", "UPDATE shelves SET tags = '{'", "UPDATE shelves SET language = 'xx'"]
    {
        store(&test, 1).await;
        let read = test.db.write(move |tx| {
            tx.run(spoil, &[])?;
            tx.one::<Shelf>(sql!("SELECT ", Shelf::COLUMNS, " FROM shelves"), &[])
        });
        assert_eq!(read.await.expect_err(spoil).code(), Code::Internal);
        test.db.write(|tx| tx.run("DELETE FROM shelves", &[])).await.expect("deleted");
    }
}

async fn typed_columns_go_in_by_the_hundred(test: TestDb) {
    let rows: Vec<NewShelf> = (0..100).map(shelf).collect();
    test.db.write(move |tx| tx.insert_all(INSERT, NAMES, &rows)).await.expect("stored");
    let large = test.db.read(|tx| {
        tx.all::<Shelf>(sql!("SELECT ", Shelf::COLUMNS, " FROM shelves WHERE size = $1"), &args![Size::Large])
    });
    let large = large.await.expect("readable");
    assert_eq!(large.len(), 50);
    assert!(large.iter().all(|shelf| shelf.size == Size::Large && shelf.notes.is_none()));
}

async fn the_small_verbs_say_what_happened(test: TestDb) {
    const FIND: &str = "SELECT id FROM shelves WHERE width = $1";
    const NARROW: &str = "UPDATE shelves SET width = 0 WHERE width = $1";
    store(&test, 1).await;
    store(&test, 2).await;
    let outcome = test.db.write(|tx| {
        let before = (tx.exists(FIND, &args![1])?, tx.exists(FIND, &args![9])?);
        let changed = (tx.changes_one(NARROW, &args![1])?, tx.changes_one(NARROW, &args![1])?);
        Ok((before, changed))
    });
    assert_eq!(outcome.await.expect("done"), ((true, false), (true, false)));
    // A statement that was meant for one row and met two leaves none of them changed.
    let both = test.db.write(|tx| tx.changes_one("UPDATE shelves SET width = 7", &[])).await;
    assert_eq!(both.expect_err("two rows").code(), Code::Internal);
    assert!(!test.db.read(|tx| tx.exists(FIND, &args![7])).await.expect("readable"));
}

#[test]
fn a_choice_has_one_text_everywhere() {
    assert_eq!(Size::Large.as_str(), "extra-large");
    assert_eq!("extra-large".parse::<Size>().expect("known"), Size::Large);
    assert_eq!("Large".parse::<Size>().expect_err("unknown").to_string(), "must be one of small, extra-large");
    assert_eq!(serde_json::to_value(Size::Large).expect("written"), "extra-large");
    assert_eq!(serde_json::from_str::<Size>("\"small\"").expect("read"), Size::Small);
    assert_eq!(schemars::schema_for!(Size).get("enum"), Some(&serde_json::json!(["small", "extra-large"])));
}
