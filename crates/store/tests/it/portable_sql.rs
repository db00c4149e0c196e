//! The portable subset: texts that domains rely on, each with the one result that both engines must give.

use kernel::Result;
use store::{Arg, Row, Tx, args, on_both_engines, testing::TestDb};

use crate::schema::MIGRATIONS;

on_both_engines!(MIGRATIONS:
    statements_mean_the_same_on_both_engines,
    values_come_back_as_they_went_in,
    claimed_rows_are_this_transactions_own,
    many_rows_go_in_at_once,
    only_rows_that_were_new_are_returned,
    each_row_that_a_change_found_is_returned,
);

enum Shape {
    Ints,
    Texts,
    Bools,
    Reals,
    /// The number of changed rows.
    Changed,
}

struct Probe {
    sql: &'static str,
    args: Vec<Arg<'static>>,
    shape: Shape,
    /// Rows joined by `;`, columns by `,`.
    gives: &'static str,
}

fn probe(sql: &'static str, args: &[Arg<'_>], shape: Shape, gives: &'static str) -> Probe {
    Probe { sql, args: args.iter().cloned().map(Arg::into_owned).collect(), shape, gives }
}

fn columns<T: store::Column + ToString>(row: &Row<'_>) -> Vec<String> {
    let mut found = Vec::new();
    while let Ok(value) = row.at::<Option<T>>(found.len()) {
        found.push(value.map_or("-".to_owned(), |value| value.to_string()));
    }
    found
}

fn run(tx: &mut Tx<'_>, probe: &Probe) -> Result<String> {
    if matches!(probe.shape, Shape::Changed) {
        return tx.exec(probe.sql, &probe.args).map(|changed| changed.to_string());
    }
    let mut rows = Vec::new();
    tx.each(probe.sql, &probe.args, &mut |row| {
        let columns = match probe.shape {
            Shape::Texts => columns::<String>(row),
            Shape::Bools => columns::<bool>(row),
            Shape::Reals => columns::<f64>(row),
            Shape::Ints | Shape::Changed => columns::<i64>(row),
        };
        rows.push(columns.join(","));
        Ok(())
    })?;
    Ok(rows.join(";"))
}

/// Each runs in the state that the ones before it left.
fn probes() -> Vec<Probe> {
    use Shape::{Bools, Changed, Ints, Reals, Texts};
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    vec![
        // Writing.
        probe(
            "INSERT INTO names (name, n) VALUES ($1, $2), ($3, $4), ($5, $6)",
            &args!["a", 1, "b", 2, "c", 3],
            Changed,
            "3",
        ),
        probe(
            "INSERT INTO names (name, n) VALUES ($1, 5) ON CONFLICT (name) DO UPDATE SET n = names.n + excluded.n RETURNING n",
            &args!["a"],
            Ints,
            "6",
        ),
        probe("INSERT INTO names (name, n) VALUES ($1, 5) ON CONFLICT DO NOTHING RETURNING n", &args!["a"], Ints, ""),
        probe("INSERT INTO names (name, n) VALUES ($1, 4) ON CONFLICT DO NOTHING RETURNING n", &args!["d"], Ints, "4"),
        probe(
            "INSERT INTO names (name, n) VALUES ($1, 9) ON CONFLICT (name) DO UPDATE SET n = excluded.n WHERE names.n > excluded.n",
            &args!["b"],
            Changed,
            "0",
        ),
        probe(
            "INSERT INTO names (name, n) SELECT name || $1, n FROM names WHERE n = $2 ON CONFLICT DO NOTHING",
            &args!["x", 4],
            Changed,
            "1",
        ),
        probe("UPDATE names SET n = n * 2 WHERE name = $1 RETURNING n, n + 1", &args!["b"], Ints, "4,5"),
        probe(
            "UPDATE names SET n = other.n FROM (SELECT n FROM names WHERE name = 'a') AS other WHERE names.name = $1",
            &args!["c"],
            Changed,
            "1",
        ),
        probe("DELETE FROM names WHERE name = $1 RETURNING name", &args!["dx"], Texts, "dx"),
        // Now: a 6, b 4, c 6, d 4.
        probe(
            "SELECT name FROM names WHERE name = ANY($1) ORDER BY name",
            &args![list(&["a", "c", "no"])],
            Texts,
            "a;c",
        ),
        probe("SELECT name FROM names WHERE name = ANY($1)", &args![list(&[])], Texts, ""),
        probe(
            "SELECT name FROM names WHERE n = ANY($1) AND name <> $2 ORDER BY name",
            &args![vec![4_i64, 5], "d"],
            Texts,
            "b",
        ),
        probe(
            "SELECT name FROM names WHERE NOT (name = ANY($1)) ORDER BY name",
            &args![list(&["a", "it's \"ok\""])],
            Texts,
            "b;c;d",
        ),
        probe("DELETE FROM names WHERE name = ANY($1)", &args![list(&["no", "neither"])], Changed, "0"),
        probe(
            "SELECT name FROM names WHERE (n, name) < ($1, $2) ORDER BY n DESC, name DESC LIMIT $3",
            &args![6, "c", 2],
            Texts,
            "a;d",
        ),
        probe("SELECT name FROM names ORDER BY name LIMIT $1 OFFSET $2", &args![2, 1], Texts, "b;c"),
        probe(
            "SELECT name FROM names WHERE name = $2 OR name = $1 OR name = $2 ORDER BY name",
            &args!["d", "a"],
            Texts,
            "a;d",
        ),
        probe("SELECT CAST(sum(n) AS BIGINT), count(*), max(n), min(n) FROM names", &[], Ints, "20,4,6,4"),
        probe("SELECT CAST(avg(n) AS DOUBLE PRECISION) FROM names", &[], Reals, "5"),
        probe("SELECT count(*) FILTER (WHERE n > $1) FROM names", &args![4], Ints, "2"),
        probe("SELECT n, count(*) FROM names GROUP BY n HAVING count(*) > 1 ORDER BY n", &[], Ints, "4,2;6,2"),
        probe("SELECT string_agg(name, ',' ORDER BY name) FROM names", &[], Texts, "a,b,c,d"),
        probe("SELECT row_number() OVER (ORDER BY n, name), n FROM names ORDER BY name", &[], Ints, "3,6;1,4;4,6;2,4"),
        probe("SELECT CAST(sum(n) OVER (ORDER BY name) AS BIGINT) FROM names ORDER BY name", &[], Ints, "6;10;16;20"),
        probe("SELECT lag(n) OVER (ORDER BY name) FROM names ORDER BY name", &[], Ints, "-;6;4;6"),
        probe(
            "WITH big AS (SELECT name FROM names WHERE n > $1) SELECT name FROM big ORDER BY name",
            &args![5],
            Texts,
            "a;c",
        ),
        probe(
            "WITH RECURSIVE up(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM up WHERE i < 4) SELECT i FROM up",
            &args![1],
            Ints,
            "1;2;3;4",
        ),
        probe("WITH pairs(k, v) AS (VALUES ('a', 1), ('b', 2)) SELECT k FROM pairs WHERE v = 2", &[], Texts, "b"),
        probe(
            "SELECT name FROM names WHERE EXISTS (SELECT 1 FROM names AS other WHERE other.n = names.n AND other.name < names.name) ORDER BY name",
            &[],
            Texts,
            "c;d",
        ),
        probe(
            "SELECT l.name, r.name FROM names AS l LEFT JOIN names AS r ON r.name > l.name AND r.n = l.n ORDER BY l.name",
            &[],
            Texts,
            "a,c;b,d;c,-;d,-",
        ),
        probe(
            "SELECT name FROM names WHERE n = 4 UNION SELECT name FROM names WHERE name = 'a' ORDER BY name",
            &[],
            Texts,
            "a;b;d",
        ),
        // Expressions.
        probe("SELECT CAST(7 AS BIGINT) / 2, CAST(-7 AS BIGINT) / 2, CAST(-7 AS BIGINT) % 3", &[], Ints, "3,-3,-1"),
        probe("SELECT n / $1 * $1 FROM names WHERE name = 'a'", &args![4], Ints, "4"),
        probe(
            "SELECT CASE WHEN n > $1 THEN n ELSE CAST($1 AS BIGINT) END FROM names ORDER BY name",
            &args![5],
            Ints,
            "6;5;6;5",
        ),
        probe("SELECT coalesce(CAST($1 AS TEXT), 'none'), nullif('x', 'x')", &args![None::<String>], Texts, "none,-"),
        probe(
            "SELECT lower('ABC'), upper('abc'), trim('  x '), replace('aXa', 'X', '-'), substr('hello', 2, 3)",
            &[],
            Texts,
            "abc,ABC,x,a-a,ell",
        ),
        probe("SELECT length($1)", &args!["äöü"], Ints, "3"),
        probe("SELECT name FROM names WHERE lower(name) LIKE lower($1) || '%' ORDER BY name", &args!["A"], Texts, "a"),
        probe("SELECT CAST(n AS TEXT) || ':' || name FROM names WHERE name = $1", &args!["a"], Texts, "6:a"),
        probe("SELECT CAST('42' AS BIGINT) + 1", &[], Ints, "43"),
        // Booleans and NULLs.
        probe(
            "INSERT INTO things (id, flag, number) VALUES ('t', $1, NULL), ('f', $2, 2), ('n', $3, 1)",
            &args![true, false, None::<bool>],
            Changed,
            "3",
        ),
        probe("SELECT flag FROM things ORDER BY id", &[], Bools, "false;-;true"),
        probe("SELECT id FROM things WHERE flag", &[], Texts, "t"),
        probe("SELECT id FROM things WHERE NOT flag", &[], Texts, "f"),
        probe("SELECT id FROM things WHERE flag = $1 OR flag IS NULL ORDER BY id", &args![false], Texts, "f;n"),
        probe("SELECT id FROM things WHERE flag = TRUE", &[], Texts, "t"),
        probe("SELECT number IS NULL, number > 1 FROM things ORDER BY id", &[], Bools, "false,true;false,false;true,-"),
        probe("UPDATE things SET flag = NOT flag WHERE id = $1 RETURNING flag", &args!["f"], Bools, "true"),
        probe("SELECT id FROM things ORDER BY number NULLS LAST", &[], Texts, "n;f;t"),
        probe("SELECT id FROM things ORDER BY number DESC NULLS FIRST", &[], Texts, "t;f;n"),
        probe("SELECT id FROM things WHERE number IS NOT DISTINCT FROM $1", &args![None::<i64>], Texts, "t"),
        probe(
            "SELECT id FROM things WHERE CAST($1 AS BIGINT) IS NULL OR number = $1 ORDER BY id",
            &args![None::<i64>],
            Texts,
            "f;n;t",
        ),
        // Tokens.
        probe("SELECT id FROM things WHERE number > 0 ORDER BY number LIMIT $1 {claim}", &args![1], Texts, "n"),
        probe("SELECT {db_now} > 1700000000000000, {db_now} < 4000000000000000", &[], Bools, "true,true"),
        probe(
            "UPDATE things SET number = {db_now} + $1 WHERE id = 't' AND (number IS NULL OR number < {db_now})",
            &args![1_000_000],
            Changed,
            "1",
        ),
        probe(
            "UPDATE things SET number = {db_now} WHERE id = 't' AND (number IS NULL OR number < {db_now})",
            &[],
            Changed,
            "0",
        ),
    ]
}

async fn statements_mean_the_same_on_both_engines(test: TestDb) {
    for probe in probes() {
        let (sql, gives) = (probe.sql, probe.gives);
        let found = test.db.write(move |tx| run(tx, &probe)).await;
        assert_eq!(found.unwrap_or_else(|error| panic!("{sql}\n{error:?}")), gives, "{sql}");
    }
}

const SET_THING: &str = "INSERT INTO things (id, number, ratio, flag, body, data) VALUES ($1, $2, $3, $4, $5, $6)";
const GET_THING: &str = "SELECT number, ratio, flag, body, data FROM things WHERE id = $1";
type Thing = (Option<i64>, Option<f64>, Option<bool>, Option<String>, Option<Vec<u8>>);

async fn values_come_back_as_they_went_in(test: TestDb) {
    let things: Vec<Thing> = vec![
        (None, None, None, None, None),
        (Some(i64::MIN), Some(f64::MIN_POSITIVE), Some(true), Some(String::new()), Some(Vec::new())),
        (
            Some(i64::MAX),
            Some(0.1),
            Some(false),
            Some("ä€😀 'quoted' \"$1\" {claim} \\".into()),
            Some((0..=255).collect()),
        ),
        // JSON is text: spaces, order and doubled keys stay.
        (
            Some(0),
            Some(-1e300),
            Some(true),
            Some(r#"{"b": 1,  "a":[1.0,2e3],"b":null}"#.into()),
            Some(vec![0; 100_000]),
        ),
    ];
    for (number, thing) in things.iter().enumerate() {
        let id = number.to_string();
        let (n, ratio, flag, body, data) = thing;
        // One through a closure, the next through the single statement: both bind all types.
        if number % 2 == 0 {
            let changed = test.db.exec_one(SET_THING, &args![id, n, ratio, flag, body, data]).await;
            assert_eq!(changed.expect("stored"), 1);
        } else {
            let (id, thing) = (id.clone(), thing.clone());
            let stored = test.db.write(move |tx| {
                let (n, ratio, flag, body, data) = &thing;
                tx.exec(SET_THING, &args![id, n, ratio, flag, body, data])
            });
            assert_eq!(stored.await.expect("stored"), 1);
        }
        let single = test.db.get_one::<Thing>(GET_THING, &args![id]).await.expect("readable");
        assert_eq!(single.as_ref(), Some(thing));
        let closure = test.db.read(move |tx| tx.one::<Thing>(GET_THING, &args![id])).await.expect("readable");
        assert_eq!(&closure, thing);
    }
    let wrong = test.db.exec_one(SET_THING, &args!["x"]).await;
    assert!(wrong.is_err(), "missing arguments are an error, not NULLs");
}

async fn claimed_rows_are_this_transactions_own(test: TestDb) {
    const CLAIM: &str = "SELECT name FROM names WHERE n = 0 ORDER BY name LIMIT 1 {claim}";
    let callers: Vec<_> = (0..20)
        .map(|number| format!("job {number:02}"))
        .map(|name| test.db.write(move |tx| crate::schema::add_name(tx, &name)))
        .collect();
    for caller in callers {
        caller.await.expect("stored");
    }
    let workers: Vec<_> = (0..20)
        .map(|_| {
            tokio::spawn(test.db.write(|tx| {
                let Some((name,)) = tx.opt::<(String,)>(CLAIM, &[])? else { return Ok(None) };
                tx.exec("UPDATE names SET n = n + 1 WHERE name = $1", &args![name])?;
                Ok(Some(name))
            }))
        })
        .collect();
    let mut claimed = Vec::new();
    for worker in workers {
        claimed.extend(worker.await.expect("the worker lives").expect("claimed"));
    }
    claimed.sort_unstable();
    assert_eq!(claimed, (0..20).map(|number| format!("job {number:02}")).collect::<Vec<_>>());
    let twice = test.db.read(|tx| tx.all::<(i64,)>("SELECT n FROM names WHERE n <> 1", &[])).await;
    assert_eq!(twice.expect("readable"), []);
}

async fn many_rows_go_in_at_once(test: TestDb) {
    let outcome = test.db.write(|tx| {
        let row = |n: i64| {
            let body = (n % 3 != 0).then(|| format!("body {n}"));
            (format!("{n:04}"), n, n as f64 / 4.0, n % 2 == 0, body, vec![n as u8])
        };
        let rows: Vec<_> = (0..1_000).map(row).collect();
        let fresh: Vec<(String,)> = tx.insert_all_returning(
            "INSERT INTO things (id, number, ratio, flag, body, data) \
             SELECT id, number, ratio, flag, body, data FROM {rows} WHERE true ON CONFLICT (id) DO NOTHING RETURNING id",
            ["id", "number", "ratio", "flag", "body", "data"],
            &rows,
        )?;
        let (stored, bodies): (i64, i64) = tx.one("SELECT count(*), count(body) FROM things", &[])?;
        Ok((fresh.len(), stored, bodies, tx.one::<Thing>(GET_THING, &args!["0006"])?))
    });
    let (fresh, stored, bodies, six) = outcome.await.expect("stored");
    assert_eq!((fresh, stored, bodies), (1_000, 1_000, 666));
    assert_eq!(six, (Some(6), Some(1.5), Some(true), None, Some(vec![6])));
}

async fn only_rows_that_were_new_are_returned(test: TestDb) {
    let store = |names: &'static [(&'static str, i64)]| {
        test.db.write(move |tx| {
            let rows: Vec<_> = names.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
            tx.insert_all_returning::<(i64, String), _>(
                "INSERT INTO names (name, n) SELECT name, n FROM {rows} WHERE true \
                 ON CONFLICT (name) DO NOTHING RETURNING n, name",
                ["name", "n"],
                &rows,
            )
        })
    };
    assert_eq!(store(&[("ann", 1), ("bob", 2)]).await.expect("stored"), [(1, "ann".into()), (2, "bob".into())]);
    assert_eq!(store(&[("bob", 3), ("cid", 4), ("cid", 5)]).await.expect("stored"), [(4, "cid".into())]);
    assert_eq!(store(&[("ann", 6)]).await.expect("stored"), []);
}

async fn each_row_that_a_change_found_is_returned(test: TestDb) {
    const CHANGE: &str = "UPDATE names SET n = rows.n FROM {rows} \
                          WHERE names.n = rows.old AND names.name <> rows.spared RETURNING rows.n, old";
    let stored = test.db.write(|tx| {
        let rows = [("ann", 1), ("bob", 1), ("cid", 1), ("dot", 2)];
        tx.insert_all("INSERT INTO names (name, n) SELECT name, n FROM {rows} WHERE true", ["name", "n"], &rows)
    });
    stored.await.expect("stored");
    let changed = test.db.write(|tx| {
        let rows = [(10_i64, 1_i64, "bob"), (20, 2, "bob"), (30, 3, "bob")];
        let mut changed: Vec<(i64, i64)> = tx.insert_all_returning(CHANGE, ["n", "old", "spared"], &rows)?;
        changed.sort_unstable();
        Ok((changed, tx.all::<(i64,)>("SELECT n FROM names ORDER BY name", &[])?))
    });
    let (changed, now) = changed.await.expect("changed");
    assert_eq!(changed, [(10, 1), (10, 1), (20, 2)], "two were found by the first row, none by the last");
    assert_eq!(now, [(10,), (1,), (10,), (20,)]);
}
