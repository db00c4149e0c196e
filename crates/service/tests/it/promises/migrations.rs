//! A release is rolled out node by node: the one before still runs while the new one has migrated already.

use kernel::{AppId, TenantId};
use service::MIGRATIONS;
use store::{
    Db, args,
    testing::{sqlite_plans, unprepared},
};
use testkit::{Site, TestApp, on_both_engines, on_one_engine};

on_one_engine!(what_is_about_one_person_or_thing_does_not_walk_through_an_app);
on_both_engines!(
    the_last_releases_statements_suit_this_schema,
    workspaces_that_had_a_plan_get_their_subscription,
    roles_of_the_release_before_list_what_they_grant,
    events_of_the_release_before_are_known_again,
);

/// `migrations/README.md` says what to do when this fails, and when the file is written again.
const RELEASED: &str = include_str!("../../../migrations/released.jsonl");

fn released() -> Vec<String> {
    RELEASED.lines().map(|line| serde_json::from_str(line).expect("a JSON string")).collect()
}

async fn the_last_releases_statements_suit_this_schema(app: TestApp) {
    let statements = released();
    assert!(statements.len() > 200, "the record has {} statements", statements.len());
    let broken = unprepared(&app.site().options().database, &statements);
    assert!(broken.is_empty(), "the release that still runs would fail on:\n{}", broken.join("\n"));
}

/// SQLite measures nothing: it is told which columns say much (see `store`'s `estimates`).
async fn what_is_about_one_person_or_thing_does_not_walk_through_an_app(app: TestApp) {
    let store::DatabaseUrl::Sqlite(path) = app.site().options().database else { panic!("SQLite is a file") };
    let says = |sql: &String, part: &str| sql.contains(part);
    let is_narrow =
        |sql: &String| ["user_id = $", " id = $", ".id = $", "id = ANY("].iter().any(|part| says(sql, part));
    let statements: Vec<String> =
        released().into_iter().filter(|sql| says(sql, "app_id = $") && is_narrow(sql)).collect();
    assert!(statements.len() > 50, "{} statements", statements.len());
    let walks = |plan: &str| {
        plan.contains(" (app_id=?)") || plan.contains(" (app_id=? AND tenant_id=?)") || plan.contains("ANY(")
    };
    let plans = sqlite_plans(&path, &statements);
    let wide: Vec<_> = statements.iter().zip(&plans).filter(|(_, plan)| walks(plan)).collect();
    assert!(wide.is_empty(), "{wide:#?}");
}

/// A store with the schema before this migration.
async fn before(site: &Site, name: &str) -> Db {
    let service::Options { database: url, clock, entropy, store_limits: limits, .. } = site.options();
    let db = Db::open(store::Options { url, clock, entropy, limits }).await.expect("the store opens");
    let first = MIGRATIONS.iter().position(|migration| migration.name == name).expect("it is known");
    db.migrate(&MIGRATIONS[..first]).await.expect("the schema before");
    db
}

async fn workspaces_that_had_a_plan_get_their_subscription(site: Site) {
    let db = before(&site, "subscriptions").await;
    let (app, free, paid, none) =
        (AppId::from_u128(1), TenantId::from_u128(2), TenantId::from_u128(3), TenantId::from_u128(4));
    let plan = "INSERT INTO plans (id, app_id, key, name, description, trial, entitlements, quotas, created_at) \
                VALUES ($1, $2, $1, 'Named', '', FALSE, '{}', '[]', 0)";
    let price = "INSERT INTO prices (id, app_id, plan_id, position, amount_minor, currency, recurrence_interval, created_at) \
                 VALUES ($1, $2, 'pro', 0, 2900, 'EUR', $1, 0)";
    let tenant = "INSERT INTO tenants (id, app_id, name, locale, mfa, onboarded, metadata, jit_provisioning, signup_email, \
                  signup_first_name, signup_last_name, plan_key, price_currency, price_interval, should_select_plan, \
                  should_setup_payments, payments_enabled, created_at) \
                  VALUES ($1, $2, '', 'en', FALSE, FALSE, '{}', TRUE, '', '', '', $3, $4, $5, FALSE, FALSE, FALSE, 7)";
    let fill = db.write(move |tx| {
        ["free", "pro"].iter().try_for_each(|key| tx.run(plan, &args![*key, app]))?;
        ["month", "year"].iter().try_for_each(|interval| tx.run(price, &args![*interval, app]))?;
        let nothing = None::<&str>;
        tx.run(tenant, &args![free, app, "free", nothing, nothing])?;
        tx.run(tenant, &args![paid, app, "pro", "EUR", "year"])?;
        tx.run(tenant, &args![none, app, nothing, nothing, nothing])
    });
    fill.await.expect("rows of the release before");
    db.migrate(MIGRATIONS).await.expect("the schema of today");
    let views = db.read(move |tx| {
        let of = |tenant| tenancy::workspaces::billing_view(tx, app, tenant);
        [free, paid, none].map(of).into_iter().collect::<kernel::Result<Vec<_>>>()
    });
    let is_paid: Vec<bool> = views.await.expect("they can be read").iter().map(|view| view.is_paid).collect();
    assert_eq!(is_paid, [false, true, false]);
    let found = db.read(move |tx| {
        let of = |tenant| billing::subscriptions::find(tx, app, tenant);
        [free, paid, none].map(of).into_iter().collect::<kernel::Result<Vec<_>>>()
    });
    let found = found.await.expect("they can be read");
    let [Some(free), Some(paid), None] = &found[..] else { panic!("one for each plan: {found:?}") };
    assert_eq!(free.id.as_u128(), 2);
    assert_eq!((free.agreement.is_paid(), free.agreement.bought.price), (false, None));
    assert_eq!((paid.agreement.bought.plan.name.as_str(), paid.agreement.anchor.as_micros()), ("Named", 7));
    assert_eq!(paid.agreement.bought.price.map(|price| price.interval.as_str()), Some("year"));
    db.close().await;
}

async fn roles_of_the_release_before_list_what_they_grant(site: Site) {
    let db = before(&site, "role_privileges").await;
    let role = "INSERT INTO roles (id, app_id, key, name, description, is_default, created_at) \
                VALUES ($1, 'app', $1, '', '', FALSE, 0)";
    let privilege = "INSERT INTO privileges (id, app_id, key, description, created_at) VALUES ($1, 'app', $1, '', 0)";
    let grant = "INSERT INTO role_privileges (role_id, privilege_id, app_id) VALUES ($1, $2, 'app')";
    let fill = db.write(move |tx| {
        ["OWNER", "NOBODY"].iter().try_for_each(|key| tx.run(role, &args![*key]))?;
        ["b", "a", "B"].iter().try_for_each(|key| tx.run(privilege, &args![*key]))?;
        ["b", "a", "B"].iter().try_for_each(|key| tx.run(grant, &args!["OWNER", *key]))
    });
    fill.await.expect("rows of the release before");
    db.migrate(MIGRATIONS).await.expect("the schema of today");
    let listed = db.read(|tx| tx.all("SELECT key, privilege_keys FROM roles ORDER BY key", &[]));
    let listed: Vec<(String, String)> = listed.await.expect("they can be read");
    assert_eq!(listed, [("NOBODY".into(), String::new()), ("OWNER".into(), "B a b".into())]);
    db.close().await;
}

async fn events_of_the_release_before_are_known_again(site: Site) {
    let db = before(&site, "ingest_ids").await;
    let id = |high: u128| AppId::from_u128(high << 64 | 0x0123_4567_89ab_cdef);
    let (swept, not_swept, keeping) = (AppId::from_u128(1), id(2), AppId::from_u128(u128::MAX));
    let name = "INSERT INTO event_names (app_id, name, id) VALUES ($1, 'order', 1)";
    let setting = "INSERT INTO event_settings (app_id, retention_days, swept_before) VALUES ($1, $2, $3)";
    let digest = "INSERT INTO event_ingest_ids (app_id, digest, happened_at) VALUES ($1, $2, $3)";
    let first = "INSERT INTO event_firsts (app_id, entity_digest, name_id, parameter_id, first_at, last_at) \
                 VALUES ($1, $2, 1, 1, 7, $3)";
    let fill = db.write(move |tx| {
        for app in [swept, not_swept, keeping] {
            tx.run(name, &args![app])?;
            tx.run(digest, &args![app, b"early".as_slice(), 10])?;
            tx.run(digest, &args![app, b"later".as_slice(), 20])?;
            tx.run(first, &args![app, "abcdefghijklmnopqrstuv", 7])?;
            tx.run(first, &args![app, "zyxwvutsrqponmlkjihgfe", 9])?;
        }
        tx.run(setting, &args![swept, 30, 15])?;
        tx.run(setting, &args![not_swept, 30, 0])
    });
    fill.await.expect("rows of the release before");
    db.migrate(MIGRATIONS).await.expect("the schema of today");

    let digests = "SELECT digest FROM event_ingest_ids WHERE app_number = $1 ORDER BY digest";
    let firsts =
        "SELECT entity_digest, first_at, last_at FROM event_firsts WHERE app_number = $1 ORDER BY entity_digest";
    for (app, kept) in [(swept, &["later"][..]), (not_swept, &["early", "later"]), (keeping, &["early", "later"])] {
        let found = db.read(move |tx| {
            let digests: Vec<(Vec<u8>,)> = tx.all(digests, &args![app.number()])?;
            Ok((digests, tx.all::<(String, i64, Option<i64>)>(firsts, &args![app.number()])?))
        });
        let (digests, firsts) = found.await.expect("they can be read");
        let digests: Vec<_> = digests.iter().map(|(digest,)| std::str::from_utf8(digest).expect("text")).collect();
        assert_eq!(digests, kept, "{app}");
        let expected = [("abcdefghijklmnop".to_owned(), 7, None), ("zyxwvutsrqponmlk".to_owned(), 7, Some(9))];
        assert_eq!(firsts, expected, "{app}");
    }
    db.close().await;
}
