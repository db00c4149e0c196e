//! Very many events in one store: what folding and packing them costs, their bytes, and how long questions take while there
//! are more and more of them.

use std::time::Duration;

use bench::{
    Result,
    database::Database,
    process,
    report::{Aim, Bound, Table, count, figure},
    subject::{self, open, post},
};
use kernel::Ticker;
use serde_json::{Value, json};
use service::Service;
use store::testing::statement;

use super::sample::{self, MAIN_NAME};

const BATCH: usize = 1_000;
/// Batches on their way at once.
const CALLERS: usize = 8;
/// Events that are taken in before they are folded and packed.
const STEP: usize = 1_000_000;
/// Longer than rows stay rows.
const A_DAY_LATER: Duration = Duration::from_hours(30);
/// The median of so many answers counts.
const TIMES: usize = 7;

/// A service with events in it.
struct Subject {
    service: Service,
    app: String,
    key: String,
    events: usize,
    spent: Spent,
}

/// What taking in, folding and packing took so far.
#[derive(Default)]
struct Spent {
    taking_in: Duration,
    folding: Duration,
    /// Of the processor, in this process.
    folding_cpu: Duration,
    packing: Duration,
}

/// How long each question takes.
type Answers = Vec<(&'static str, Duration)>;

/// The filtered sum comes first.
const FILTERED: usize = 0;

pub async fn measure(engine: &str, database: Option<&Database>, sizes: &[usize], aims: &mut Vec<Aim>) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let url = database.map(Database::url).transpose()?;
    let service = open(folder.path(), url.as_deref(), |_| ()).await?;
    let first = service.first_run().await?.ok_or("the store is not new")?;
    let (app, key) = (first.app.id.to_string(), first.api_key.clone());
    let mut subject = Subject { service, app, key, events: 0, spent: Spent::default() };
    let mut aim = |what: &str, found: f64, bound: Bound, unit: &'static str| {
        aims.push(Aim::new(format!("{engine}: {what}"), found, bound, unit));
    };

    let smallest = sizes.first().copied().unwrap_or(STEP).min(STEP);
    subject.take_in(smallest).await?;
    let in_sql = subject.ask_in_sql().await?;
    let from_rows = subject.ask_all().await?;
    println!("\n{engine}, {} events, none of them packed\n", count(smallest as f64));
    print_answers(&from_rows);
    println!("a filtered sum in SQL over JSON: {} ms", figure(millis(in_sql)));
    let in_sql_each = in_sql.as_secs_f64() / smallest as f64;
    subject.pack().await?;

    let mut answers: Vec<Answers> = Vec::new();
    for &size in sizes {
        subject.grow(size).await?;
        println!("\n{engine}, {} events\n", count(size as f64));
        subject.print_rates();
        let asked = subject.ask_all().await?;
        print_answers(&asked);
        subject.print_size(database).await?;
        answers.push(asked);
    }
    let (Some(few), Some(many), Some(&size)) = (answers.first(), answers.last(), sizes.last()) else { return Ok(()) };

    aim("folded in a second of CPU", subject.folded_each_second(), Bound::AtLeast(60_000.0), "");
    let (_, bytes, packed) = subject.blocks().await?;
    aim("bytes of a packed event", bytes / packed, Bound::Below(40.0), "");
    let whole = subject.size(database).await?;
    aim("bytes of an event with all that it feeds", whole / size as f64, Bound::Below(200.0), "");
    for ((what, latency), (_, before)) in many.iter().zip(few).skip(FILTERED + 1) {
        aim(what, millis(*latency), Bound::Below(15.0), " ms");
        if answers.len() > 1 {
            let over = format!("{what}, {} events over {}", count(size as f64), count(sizes[0] as f64));
            aim(&over, latency.as_secs_f64() / before.as_secs_f64(), Bound::AtMost(1.2), "x");
        }
    }
    let filtered = many[FILTERED].1.as_secs_f64();
    aim("a filtered sum, an event", filtered * 1e9 / sample::share_of_main_name(size), Bound::Below(60.0), " ns");
    let over_sql = filtered / size as f64 / in_sql_each;
    aim("a filtered sum over the same in SQL on JSON", over_sql, Bound::AtMost(1.0 / 15.0), "x");
    subject.service.close().await;
    Ok(())
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn print_answers(answers: &Answers) {
    let mut table = Table::new(["question", "ms"]);
    for (what, latency) in answers {
        table.row([(*what).to_owned(), figure(millis(*latency))]);
    }
    println!("{table}");
}

impl Subject {
    /// Takes in, folds and packs until there are so many.
    async fn grow(&mut self, events: usize) -> Result<()> {
        while self.events < events {
            self.take_in((events - self.events).min(STEP)).await?;
            self.pack().await?;
            eprintln!("{} events", count(self.events as f64));
        }
        Ok(())
    }

    /// Takes so many in and folds them.
    async fn take_in(&mut self, events: usize) -> Result<()> {
        let (began, until) = (Ticker.now(), self.events + events);
        let starts: Vec<usize> = (self.events..until).step_by(BATCH).collect();
        for some in starts.chunks(CALLERS) {
            let calls = some.iter().map(|start| self.send(*start, until.min(start + BATCH)));
            for sent in futures_util::future::join_all(calls).await {
                sent?;
            }
        }
        self.events = until;
        self.spent.taking_in += Ticker.since(began);
        let (began, cpu) = (Ticker.now(), process::cpu_time(std::process::id())?);
        self.service.drain().await?;
        self.spent.folding += Ticker.since(began);
        self.spent.folding_cpu += process::cpu_time(std::process::id())? - cpu;
        Ok(())
    }

    async fn send(&self, from: usize, to: usize) -> Result<()> {
        let body = json!(sample::events(&self.app, from..to)).to_string();
        post(&self.service, "/event-log/batch", ("x-api-key", &self.key), &body, 201).await.map(drop)
    }

    /// Lets the rows grow old.
    async fn pack(&mut self) -> Result<()> {
        let clock = self.service.core().db.clock();
        clock.raise_offset(clock.offset() + A_DAY_LATER);
        let began = Ticker.now();
        self.service.drain().await?;
        self.spent.packing += Ticker.since(began);
        Ok(())
    }

    fn folded_each_second(&self) -> f64 {
        self.events as f64 / self.spent.folding_cpu.as_secs_f64()
    }

    fn print_rates(&self) {
        let rate = |spent: Duration| count(self.events as f64 / spent.as_secs_f64());
        println!(
            "a second: {} taken in, {} folded ({} a second of this process's CPU), {} packed\n",
            rate(self.spent.taking_in),
            rate(self.spent.folding),
            count(self.folded_each_second()),
            rate(self.spent.packing),
        );
    }

    async fn print_size(&self, database: Option<&Database>) -> Result<()> {
        let (blocks, bytes, packed) = self.blocks().await?;
        let whole = self.size(database).await?;
        println!(
            "{} of them in {blocks} blocks, {} bytes each; the whole database {} bytes each",
            count(packed),
            figure(bytes / packed),
            figure(whole / self.events as f64)
        );
        Ok(())
    }

    /// Bytes of the whole database; without pages that will be used again, where the engine tells.
    async fn size(&self, database: Option<&Database>) -> Result<f64> {
        let Some(database) = database else {
            let sql = statement(
                "SELECT (page_count - freelist_count) * page_size \
                 FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"
                    .to_owned(),
            );
            let (bytes,) = self.service.core().db.scan(|tx| tx.one::<(i64,)>(sql, &[])).await?;
            return Ok(bytes as f64);
        };
        let row = database.client().await?.query_one("SELECT pg_database_size(current_database())", &[]).await?;
        Ok(row.get::<_, i64>(0) as f64)
    }

    /// How many there are, and their bytes and events.
    async fn blocks(&self) -> Result<(i64, f64, f64)> {
        let sql = statement(
            "SELECT count(*), CAST(sum(length(data)) AS BIGINT), CAST(sum(events) AS BIGINT) FROM event_blocks"
                .to_owned(),
        );
        let (blocks, bytes, events) = self.service.core().db.scan(|tx| tx.one::<(i64, i64, i64)>(sql, &[])).await?;
        Ok((blocks, bytes as f64, events as f64))
    }

    /// The filtered question, as somebody would ask it over a table of events with a JSON column.
    async fn ask_in_sql(&self) -> Result<Duration> {
        let (plan, amount) = match self.service.core().db.is_single_node() {
            true => ("parameters->>'plan'", "CAST(parameters->>'amount' AS REAL)"),
            false => ("CAST(parameters AS jsonb)->>'plan'", "CAST(CAST(parameters AS jsonb)->>'amount' AS float8)"),
        };
        let sql = statement(format!(
            "SELECT count(*), sum({amount}) FROM event_rows WHERE name_id = \
             (SELECT id FROM event_names WHERE name = '{MAIN_NAME}') AND {plan} = 'pro'"
        ));
        let mut spent = Vec::new();
        for _ in 0..3 {
            let began = Ticker.now();
            self.service.core().db.scan(|tx| tx.one::<(i64, f64)>(sql, &[])).await?;
            spent.push(Ticker.since(began));
        }
        spent.sort_unstable();
        Ok(spent[1])
    }

    async fn ask_all(&self) -> Result<Answers> {
        let (from, to) = (sample::FROM, sample::TO);
        let query = |more: Value| {
            let mut query = json!({ "appId": self.app, "eventName": MAIN_NAME, "from": from, "to": to });
            if let (Value::Object(query), Value::Object(more)) = (&mut query, more) {
                query.extend(more);
            }
            query.to_string()
        };
        let filtered = query(json!({ "filters": { "plan": "pro" }, "sumField": "amount" }));
        let whole = query(json!({ "sumField": "amount", "groupBy": "day" }));
        let chart =
            format!("/event-log/charts?appId={}&eventName={MAIN_NAME}&interval=day&from={from}&to={to}", self.app);
        let journey = format!("/event-log/entities/user/{}?appId={}", sample::USER, self.app);
        Ok(vec![
            ("a filtered sum", self.median(|| self.post("/event-log/query", &filtered)).await?),
            ("a query without filters", self.median(|| self.post("/event-log/query", &whole)).await?),
            ("a chart", self.median(|| self.get(&chart)).await?),
            ("a journey", self.median(|| self.get(&journey)).await?),
        ])
    }

    async fn median<F: Future<Output = Result<()>>>(&self, ask: impl Fn() -> F) -> Result<Duration> {
        let mut spent = Vec::new();
        for _ in 0..TIMES {
            let began = Ticker.now();
            ask().await?;
            spent.push(Ticker.since(began));
        }
        spent.sort_unstable();
        Ok(spent[TIMES / 2])
    }

    async fn post(&self, path: &str, body: &str) -> Result<()> {
        post(&self.service, path, ("x-api-key", &self.key), body, 200).await.map(drop)
    }

    async fn get(&self, path: &str) -> Result<()> {
        subject::get(&self.service, path, ("x-api-key", &self.key), 200).await.map(drop)
    }
}
