//! Random events, out of order and repeated, with users erased and rows packed in between, against a naive model in memory:
//! every question has the same answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kernel::Timestamp;
use serde_json::{Map, Value, json};
use testkit::{TestApp, on_both_engines};

use super::{ask, blocks::blocks, event, get};

on_both_engines!(every_answer_is_the_models);

/// A sequence that is the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[usize::try_from(self.roll(from.len() as u64)).expect("small")]
    }
}

const NAMES: [&str; 3] = ["signup", "order", "paid"];
/// 2026-02-20T00:00:00Z.
const START: i64 = 1_771_545_600;
const DAYS: u64 = 40;

struct Sent {
    name: &'static str,
    at: Timestamp,
    parameters: Map<String, Value>,
}

fn instant(dice: &mut Dice) -> Timestamp {
    // Often on the edge of an hour.
    let hour = i64::try_from(dice.roll(DAYS * 24)).expect("small") * 3_600_000;
    let inside = match dice.roll(3) {
        0 => 0,
        1 => 3_599_999,
        _ => i64::try_from(dice.roll(3_600_000)).expect("small"),
    };
    Timestamp::from_micros((START * 1_000 + hour + inside) * 1_000)
}

fn random(dice: &mut Dice) -> Sent {
    let (name, at, mut parameters) = (dice.pick(&NAMES), instant(dice), Map::new());
    let user = format!("u{}", dice.roll(12));
    for (name, value) in [
        ("userId", json!(user)),
        ("order_id", json!(dice.roll(20))),
        ("plan", json!(dice.pick(&["free", "pro", "__other__", ""]))),
        ("ok", json!(dice.roll(2) == 0)),
        ("amount", json!(dice.roll(1_000))),
        (
            "mixed",
            [json!("1"), json!(1), json!(1.5), json!(null), json!([1])][usize::try_from(dice.roll(5)).expect("small")]
                .clone(),
        ),
    ] {
        if dice.roll(3) > 0 {
            parameters.insert(name.to_owned(), value);
        }
    }
    Sent { name, at, parameters }
}

fn bucket(interval: &str, at: Timestamp) -> Timestamp {
    let text = at.to_string();
    let day: Timestamp = format!("{}T00:00:00Z", &text[..10]).parse().expect("a day");
    match interval {
        "hour" => format!("{}:00:00Z", &text[..13]).parse().expect("an hour"),
        "day" => day,
        "month" => format!("{}-01T00:00:00Z", &text[..7]).parse().expect("a month"),
        _ => {
            let days = day.as_seconds() / 86_400;
            Timestamp::from_seconds((days - (days + 3) % 7) * 86_400)
        }
    }
}

/// A bucket of a chart.
#[derive(Default)]
struct Expected {
    count: i64,
    counts: BTreeMap<String, BTreeMap<String, i64>>,
    sums: BTreeMap<String, f64>,
}

struct Model(Vec<Sent>);

const ERASED: &str = "__erased__";

impl Model {
    fn within<'a>(&'a self, name: &'a str, from: Timestamp, to: Timestamp) -> impl Iterator<Item = &'a Sent> {
        self.0.iter().filter(move |sent| sent.name == name && sent.at >= from && sent.at <= to)
    }

    fn query(
        &self,
        name: &str,
        (from, to): (Timestamp, Timestamp),
        group: &str,
        filters: &Map<String, Value>,
    ) -> Value {
        let mut buckets: BTreeMap<Timestamp, (i64, f64)> = BTreeMap::new();
        for sent in self.within(name, from, to) {
            if filters.iter().all(|(name, wanted)| sent.parameters.get(name) == Some(wanted)) {
                let (count, sum) = buckets.entry(bucket(group, sent.at)).or_default();
                *count += 1;
                *sum += sent.parameters.get("amount").and_then(Value::as_f64).unwrap_or(0.0);
            }
        }
        let whole = |sum: f64| json!(sum as i64);
        let shown = buckets
            .iter()
            .map(|(start, (count, sum))| json!({ "bucketStart": start, "count": count, "total": whole(*sum) }));
        json!({
            "totalCount": buckets.values().map(|(count, _)| count).sum::<i64>(),
            "totalSum": whole(buckets.values().map(|(_, sum)| sum).sum()),
            "buckets": shown.collect::<Vec<_>>(),
        })
    }

    fn chart(&self, name: &str, (from, to): (Timestamp, Timestamp), interval: &str) -> Value {
        let mut buckets: BTreeMap<Timestamp, Expected> = BTreeMap::new();
        for sent in self.within(name, from, to) {
            let Expected { count, counts, sums } = buckets.entry(bucket(interval, sent.at)).or_default();
            *count += 1;
            for (name, value) in &sent.parameters {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Bool(value) => value.to_string(),
                    Value::Number(number) => {
                        *sums.entry(name.clone()).or_default() += number.as_f64().expect("a number");
                        continue;
                    }
                    _ => continue,
                };
                *counts.entry(name.clone()).or_default().entry(text).or_default() += 1;
            }
        }
        let number = |sum: &f64| if sum.fract() == 0.0 { json!(*sum as i64) } else { json!(sum) };
        let shown = buckets.iter().map(|(start, Expected { count, counts, sums })| {
            let sums: Map<String, Value> = sums.iter().map(|(name, sum)| (name.clone(), number(sum))).collect();
            json!({ "bucketStart": start, "count": count, "parameterCounts": counts, "parameterSums": sums })
        });
        shown.collect()
    }

    /// By entity: the first time of each event.
    fn firsts(&self, parameter: &str) -> BTreeMap<String, BTreeMap<&'static str, Timestamp>> {
        let mut firsts: BTreeMap<String, BTreeMap<&'static str, Timestamp>> = BTreeMap::new();
        for sent in &self.0 {
            let Some(value) = sent.parameters.get(parameter) else { continue };
            let entity = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // What is left of somebody is nobody.
            if entity == ERASED {
                continue;
            }
            let first = firsts.entry(entity).or_default().entry(sent.name).or_insert(sent.at);
            *first = sent.at.min(*first);
        }
        firsts
    }
}

async fn send(app: &TestApp, dice: &mut Dice, model: &mut Model) {
    let mut batch = Vec::new();
    for number in 0..1 + dice.roll(240) {
        let sent = random(dice);
        let mut body = event(app, sent.name, &sent.at.to_string(), Value::Object(sent.parameters.clone()));
        body["ingestId"] = json!(format!("{}-{number}", model.0.len()));
        batch.push(body.clone());
        // Some come twice, in the same batch or in the next one.
        if dice.roll(4) == 0 {
            batch.push(body);
        }
        model.0.push(sent);
    }
    for _ in 0..=dice.roll(2) {
        app.key().post("/event-log/batch", json!(batch)).await.expect(201);
        if dice.roll(2) == 0 {
            app.drain().await;
        }
    }
}

/// Takes a user out; whoever comes again is somebody new.
async fn erase(app: &TestApp, user: &str, model: &mut Model) {
    let path = format!("/admin/apps/{}/events/entities/user/{user}", app.app_id());
    app.operator().delete(&path).await.expect(202);
    app.drain().await;
    for held in model.0.iter_mut().filter_map(|sent| sent.parameters.get_mut("userId")) {
        if held == user {
            *held = json!(ERASED);
        }
    }
}

async fn every_answer_is_the_models(app: TestApp) {
    let (mut dice, mut model) = (Dice(13), Model(Vec::new()));
    for round in 0..16 {
        send(&app, &mut dice, &mut model).await;
        match round {
            2 | 11 => erase(&app, "u3", &mut model).await,
            4 => app.restart().await,
            6 => erase(&app, "u7", &mut model).await,
            // Old enough to be packed.
            8 | 13 => app.advance(Duration::from_hours(25)).await,
            14 => erase(&app, "u5", &mut model).await,
            _ => {}
        }
    }
    app.drain().await;
    assert!(blocks(&app).await >= 3, "some of it is packed");
    for _ in 0..60 {
        let (one, other, name) = (instant(&mut dice), instant(&mut dice), dice.pick(&NAMES));
        let (from, to) = (one.min(other), one.max(other));
        let interval = dice.pick(&["hour", "day", "week", "month"]);
        let path = format!("&eventName={name}&interval={interval}&from={from}&to={to}&limit=1000");
        let chart = get(&app, "/charts", &path).await.expect(200).json();
        assert_eq!(chart, model.chart(name, (from, to), interval), "{path}");
        let filters = match dice.roll(3) {
            0 => Map::new(),
            1 => Map::from_iter([("plan".to_owned(), json!("pro"))]),
            _ => Map::from_iter([("ok".to_owned(), json!(true)), ("mixed".to_owned(), json!(null))]),
        };
        let query = json!({ "eventName": name, "from": from, "to": to, "groupBy": interval, "sumField": "amount", "filters": filters });
        let answer = ask(&app, query.clone()).await.expect(200).json();
        assert_eq!(answer, model.query(name, (from, to), interval, &filters), "{query}");
    }
    check_journeys(&app, &model).await;
    check_trail(&app, &model).await;
}

async fn check_journeys(app: &TestApp, model: &Model) {
    let firsts = model.firsts("userId");
    for (entity, events) in &firsts {
        let journey = get(app, &format!("/entities/user/{entity}"), "").await.expect(200);
        assert_eq!(journey.at("/events"), json!(events), "{entity}");
        for (key, duration) in journey.at("/durations").as_object().expect("durations") {
            let (earlier, later) = key.split_once("_to_").expect("two events");
            assert_eq!(*duration, events[later].as_millis() - events[earlier].as_millis(), "{entity} {key}");
        }
    }
    let durations: Vec<i64> = firsts
        .values()
        .filter_map(|events| Some(events.get("paid")?.as_millis() - events.get("signup")?.as_millis()))
        .filter(|duration| *duration >= 0)
        .collect();
    let stats = get(app, "/journeys/stats", "&startEvent=signup&endEvent=paid&entityType=userId").await.expect(200);
    assert_eq!(stats.at("/count"), durations.len());
    assert_eq!(stats.at("/max_ms"), durations.iter().copied().max().unwrap_or(0));
}

async fn check_trail(app: &TestApp, model: &Model) {
    for user in ["u0", "u5", "u7"] {
        let entries = get(app, "/audit", &format!("&actor={user}&limit=500")).await.expect(200).json();
        let found: Vec<&str> =
            entries.as_array().expect("a list").iter().filter_map(|one| one["timestamp"].as_str()).collect();
        let mut expected: Vec<String> = model
            .0
            .iter()
            .filter(|sent| sent.parameters.get("userId") == Some(&json!(user)))
            .map(|sent| sent.at.to_string())
            .collect();
        expected.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(found, expected, "{user}");
    }
    let ids: BTreeSet<String> = get(app, "/audit", "&limit=500")
        .await
        .expect(200)
        .json()
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["rawEventId"].to_string())
        .collect();
    assert!(ids.len() >= 300, "every entry has an id of its own: {}", ids.len());
}
