//! What the planner knows.

use super::{ask, on_postgres, run};

#[test]
fn a_table_that_filled_is_measured() {
    on_postgres(async |test| {
        let rows = |table: &str| {
            ask(
                &test.url,
                &format!("SELECT CAST(reltuples AS BIGINT) FROM pg_class WHERE oid = CAST('{table}' AS regclass)"),
            )
        };
        let fill = |from: i64, to: i64| {
            let insert = format!("INSERT INTO names SELECT CAST(n AS TEXT), 0 FROM generate_series({from}, {to}) AS n");
            run(&test.url, &format!("{insert}; SELECT pg_stat_force_next_flush()"));
        };
        let unmeasured = -1;
        run(&test.url, "ALTER TABLE names SET (autovacuum_enabled = false)");

        fill(1, 600);
        test.db.measure_grown_tables().await.expect("measured");
        assert_eq!((rows("names"), rows("totals")), (600, unmeasured));

        fill(601, 1_200);
        test.db.measure_grown_tables().await.expect("measured");
        assert_eq!(rows("names"), 600, "it has not grown enough for that");

        fill(1_201, 3_000);
        test.db.measure_grown_tables().await.expect("measured");
        assert_eq!(rows("names"), 3_000);
    });
}
