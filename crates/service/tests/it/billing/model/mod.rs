//! Random commands, times, callbacks, restarts and kills against a model of the contract's table of states, with a payment
//! provider outside. The model knows days and names; whatever it says must be what the service says.
//!
//! The service is killed while it waits for the provider, which did what it was asked to, or did not: requests and jobs
//! end where they are. What was asked is asked again, or it is left to the jobs; the model knows of no kills.

mod table;

use std::{
    collections::BTreeSet,
    iter::{once, repeat_n},
    time::Duration,
};

use serde_json::{Value, json};
use table::{
    DAY, Model,
    Standing::{Active, Ending, Trial},
    WEEK,
};
use testkit::{
    catalog::PLANS,
    on_both_engines,
    payments::{Stage, Trouble},
};

on_both_engines!(the_service_does_what_the_model_says);

const SEEDS: u64 = 4;
const COMMANDS: usize = 40;
/// A renewal fails, or is paid; a month passes.
const FAILS: u64 = 20;
const PAYS: u64 = 21;
const WAITS: u64 = 22;
/// Every transition of the table, whatever chance comes to.
const SURE: [&[u64]; 8] = [
    &[1, 0, WAITS, 1],
    &[0, 6],
    &[0, 2],
    &[2, 6, 7],
    &[2, FAILS, 6, 7, PAYS],
    &[2, FAILS, WAITS],
    &[2, 6, WAITS],
    &[2, 6, 1, 6, WAITS],
];
/// The last command of each is what the service is killed in, after so many calls to the provider.
const KILLED: [(usize, &[u64]); 11] = [
    (0, &[2]),
    (2, &[2]),
    (2, &[3]),
    (0, &[0, 2]),
    (0, &[2, 4]),
    (0, &[2, 6]),
    (0, &[2, 6, 7]),
    (0, &[2, 1]),
    (0, &[2, 1, 5]),
    (0, &[2, FAILS]),
    (0, &[2, FAILS, PAYS]),
];
/// The provider does what it was asked to, or does not.
const LAST_CALLS: [Trouble; 2] = [Trouble::Hangs, Trouble::Ignores];
/// No number of these is a number of the days that anything lasts, so that nothing happens just when something ends.
const STEP: i64 = 25 * 3_600;
struct Play {
    stage: Stage,
    model: Model,
    subscription: Option<String>,
    chance: u64,
    /// Whether a request that nobody answered is made again.
    asks_again: bool,
    /// What the service was killed in.
    kills: BTreeSet<&'static str>,
}

/// How the service ends.
#[derive(Clone, Copy)]
struct Kill {
    calls_before: usize,
    last: Trouble,
    asks_again: bool,
}

impl Play {
    async fn begin(stage: &Stage, seed: u64) -> Self {
        let acme = stage.app.workspace(&format!("w{seed}")).await;
        let model = Model {
            standing: None,
            plan: "free",
            gate: false,
            scheduled: None,
            tried: false,
            there: None,
            seen: BTreeSet::new(),
        };
        Self {
            stage: Stage { acme, ..stage.clone() },
            model,
            subscription: None,
            chance: seed,
            asks_again: true,
            kills: BTreeSet::new(),
        }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) % sides
    }

    async fn restart(&self) {
        let url = self.stage.provider.url().to_owned();
        self.stage.app.restart_with(|options| options.payprovider_url = url).await;
    }

    /// From here on a call to the provider is the service's last one, if it makes so many.
    fn plan_kill(&mut self, Kill { calls_before, last, asks_again }: Kill) {
        self.asks_again = asks_again;
        self.stage.provider.trouble(repeat_n(Trouble::Late(Duration::ZERO), calls_before).chain(once(last)));
    }

    fn roll_kill(&mut self) -> Kill {
        let last = LAST_CALLS[usize::from(self.roll(2) == 0)];
        let calls_before = [0, 0, 0, 1, 2, 4][usize::try_from(self.roll(6)).expect("a place")];
        Kill { calls_before, last, asks_again: self.roll(2) == 0 }
    }

    /// `None` when the service was killed in it. It runs again then.
    async fn unless_killed<T>(&mut self, what: &'static str, doing: impl Future<Output = T>) -> Option<T> {
        let provider = self.stage.provider.clone();
        let done = tokio::select! {
            biased;
            done = doing => Some(done),
            () = provider.hung() => None,
        };
        if done.is_none() {
            self.kills.insert(what);
            provider.no_trouble();
            self.restart().await;
        }
        done
    }

    /// `null` when it was left to the jobs.
    async fn post(&mut self, path: &'static str, body: Value, expected: u16) -> Value {
        let owner = self.stage.acme.owner();
        let answer = match self.unless_killed(path, owner.post(path, body.clone())).await {
            Some(answer) => answer,
            // Nobody finishes a checkout that nobody knows of.
            None if path.ends_with("checkout") || self.asks_again => self.stage.acme.owner().post(path, body).await,
            None => {
                self.stage.app.advance(Duration::from_hours(1)).await;
                return Value::Null;
            }
        };
        assert_eq!(answer.status(), expected, "{path} {:?} {}", self.model, answer.body());
        serde_json::from_str(answer.body()).unwrap_or_default()
    }

    async fn drain(&mut self) {
        let app = self.stage.app.clone();
        if self.unless_killed("drain", app.drain()).await.is_none() {
            self.stage.app.drain().await;
        }
    }

    /// Sends what happened at the provider, in the wrong order. What was not answered is sent again.
    async fn tell(&mut self) {
        for event in self.stage.provider.take_events().iter().rev() {
            let stage = self.stage.clone();
            match self.unless_killed("tell", stage.tell(event)).await {
                Some(answer) => answer.expect(200),
                None => self.stage.tell(event).await.expect(200),
            };
        }
    }

    async fn trial(&mut self, now: i64) {
        let model = &self.model;
        let is_trial = matches!(model.standing, Some(Trial { .. } | Ending { trial: true, .. }));
        if model.runs() && is_trial {
            self.post("/billing/trial/start", json!({ "planSlug": "team" }), 201).await;
        } else if model.tried || (model.runs() && model.plan != "free") {
            self.post("/billing/trial/start", json!({ "planSlug": "team" }), 409).await;
        } else {
            self.post("/billing/trial/start", json!({ "planSlug": "team" }), 201).await;
            let model = &mut self.model;
            (model.standing, model.plan, model.tried) = (Some(Trial { until: now + 3 * DAY }), "team", true);
            (model.gate, model.scheduled) = (false, None);
        }
    }

    async fn select_free(&mut self) {
        self.post("/account/subscription/select", json!({ "planKey": "free" }), 201).await;
        let now = self.stage.now();
        let model = &mut self.model;
        if model.there.is_none() {
            return model.become_free();
        }
        let end = match model.standing {
            Some(Ending { at, .. }) => at,
            _ => model.period_end(now),
        };
        model.scheduled = Some(end);
        model.there = model.there.map(|(_, end)| (true, end));
    }

    async fn buy(&mut self, plan: &'static str, now: i64) {
        let body = json!({ "planKey": plan });
        if self.model.there.is_some() {
            self.post("/account/subscription/checkout", body, 409).await;
            return;
        }
        let begun = self.post("/account/subscription/checkout", body, 201).await;
        let session = begun["sessionId"].as_str().expect("a session").to_owned();
        self.subscription = Some(self.stage.pay(&session));
        if self.roll(2) == 0 {
            let stage = self.stage.clone();
            match self.unless_killed("confirm", stage.confirm(&session)).await {
                Some(answer) => answer.expect(200),
                None => self.stage.confirm(&session).await.expect(200),
            };
        }
        let model = &mut self.model;
        (model.standing, model.plan, model.gate) = (Some(Active), plan, false);
        (model.scheduled, model.there) = (None, Some((false, now + WEEK)));
    }

    async fn change(&mut self, plan: &'static str) {
        let body = json!({ "planKey": plan });
        let model = &self.model;
        let same = model.runs() && model.plan == plan && model.scheduled.is_none();
        if !same && model.there.is_none() {
            self.post("/account/subscription/change", body, 400).await;
            return;
        }
        self.post("/account/subscription/change", body, 201).await;
        let model = &mut self.model;
        if let Some((cancel, _)) = model.there.as_mut().filter(|_| !same) {
            if model.scheduled.is_some() {
                *cancel = false;
                model.reactivate();
            }
            model.plan = plan;
        }
    }

    async fn cancel(&mut self) {
        let expected = if self.model.standing.is_none() { 404 } else { 201 };
        let answer = self.post("/billing/cancel", json!({}), expected).await;
        let now = self.stage.now();
        let model = &mut self.model;
        let told =
            answer["endsAt"].as_str().and_then(|at| at.parse::<kernel::Timestamp>().ok()).map(|at| at.as_seconds());
        let at = match model.there {
            Some((_, end)) if !matches!(model.standing, Some(Ending { .. })) => {
                let at = model.period_end(now);
                model.there = Some((true, end));
                at
            }
            // The end of a month of the calendar is not worked out twice.
            _ => told.unwrap_or_default(),
        };
        model.cancel(at);
        if let (Some(Ending { at, .. }), Some(told)) = (model.standing, told) {
            assert!((at - told).abs() <= 5, "it ends at {at}, not at {told}");
        }
    }

    async fn reactivate(&mut self) {
        let expected = if self.model.standing.is_none() { 404 } else { 201 };
        self.post("/billing/reactivate", json!({}), expected).await;
        let model = &mut self.model;
        let is_ending = matches!(model.standing, Some(Ending { .. })) || model.scheduled.is_some();
        if let Some((cancel, _)) = model.there.as_mut().filter(|_| is_ending) {
            *cancel = false;
        }
        model.reactivate();
    }

    /// Something happens at the provider.
    fn happen(&mut self, which: u64, now: i64) {
        let (Some(subscription), Some((cancel, end))) = (self.subscription.clone(), self.model.there) else { return };
        let provider = self.stage.provider.clone();
        provider.set_time(now);
        let model = &mut self.model;
        match which {
            0 => {
                provider.renew(&subscription, true, 1);
                model.settle_bill();
                model.there = Some((cancel, now + WEEK));
                model.align(now + WEEK);
            }
            1 => {
                provider.renew(&subscription, false, 1);
                model.there = Some((cancel, now + WEEK));
                model.align(now + WEEK);
                model.fail(now);
            }
            2 => {
                provider.change(&subscription, &json!({ "status": "unpaid" }));
                model.fail(now);
                model.gate = true;
            }
            3 => {
                provider.change(&subscription, &json!({ "status": "canceled" }));
                if model.scheduled.is_some() { model.become_free() } else { model.end() }
            }
            _ => {
                provider.change(&subscription, &json!({ "cancel_at_period_end": !cancel }));
                let ends = model.period_end(now);
                if cancel {
                    model.reactivate();
                } else {
                    model.cancel(ends);
                }
                model.there = Some((!cancel, end));
            }
        }
    }

    async fn pass_days(&mut self, number: i64) {
        let (app, until) = (self.stage.app.clone(), self.stage.now() + STEP * number);
        let seconds = |time: i64| Duration::from_secs(time.unsigned_abs());
        if self.unless_killed("time", app.advance(seconds(STEP * number))).await.is_none() {
            // The clock stands wherever it had come to.
            self.stage.app.advance(seconds((until - self.stage.now()).max(0))).await;
        }
        self.model.pass(self.stage.now());
    }

    async fn step(&mut self, command: u64) {
        let now = self.stage.now();
        self.model.pass(now);
        let before = self.model.status();
        match command {
            0 => self.trial(now).await,
            1 => self.select_free().await,
            2 | 3 => self.buy(if command == 2 { "team" } else { "max" }, now).await,
            4 => self.change("max").await,
            5 => self.change("team").await,
            6 => self.cancel().await,
            7 => self.reactivate().await,
            8..=10 => {
                let which = self.roll(5);
                self.happen(which, now);
            }
            FAILS => self.happen(1, now),
            PAYS => self.happen(0, now),
            WAITS => self.pass_days(30).await,
            11 => self.restart().await,
            _ => {
                let days = i64::try_from(self.roll(9)).expect("a few");
                self.pass_days(days + 1).await;
            }
        }
        self.tell().await;
        self.drain().await;
        self.stage.provider.no_trouble();
        self.stage.provider.take_events();
        self.model.pass(self.stage.now());
        self.compare(command).await;
        let (from, to) = (before.unwrap_or("none"), self.model.status().unwrap_or("none"));
        self.model.seen.insert(format!("{from} -> {to}"));
    }

    async fn compare(&self, command: u64) {
        let answer = self.stage.acme.owner().get("/billing/state").await;
        let state = if answer.status() == 404 { Value::Null } else { answer.expect(200).json() };
        let model = &self.model;
        let said = (state["status"].as_str(), state["gateEngaged"] == true, state["scheduledChange"].is_object());
        let expected = (model.status(), model.gate && model.standing.is_some(), model.scheduled.is_some());
        assert_eq!(said, expected, "after {command}: {model:?} {state}");
        if model.standing.is_some() {
            assert_eq!(state["plan"]["slug"], model.plan, "after {command}: {model:?}");
        }
    }
}

async fn plan(stage: &Stage, key: &str, trial_days: Option<u32>) {
    let price = json!({ "amount": 10, "currency": "EUR", "recurrenceInterval": "week" });
    let body =
        json!({ "key": key, "name": key, "prices": [price], "trial": trial_days.is_some(), "trialDays": trial_days });
    stage.app.key().post(PLANS, body).await.expect(200);
}

async fn the_service_does_what_the_model_says(stage: Stage) {
    plan(&stage, "team", Some(3)).await;
    plan(&stage, "max", None).await;
    let (mut seen, mut kills) = (BTreeSet::new(), BTreeSet::new());
    for seed in 1..=SEEDS {
        let mut play = Play::begin(&stage, seed).await;
        for _ in 0..COMMANDS {
            if play.roll(2) == 0 {
                let kill = play.roll_kill();
                play.plan_kill(kill);
            }
            let command = play.roll(13);
            play.step(command).await;
        }
        seen.append(&mut play.model.seen);
        kills.append(&mut play.kills);
    }
    for (seed, commands) in (SEEDS + 1..).zip(SURE) {
        let mut play = Play::begin(&stage, seed).await;
        for command in commands {
            play.step(*command).await;
        }
        seen.append(&mut play.model.seen);
    }
    for (seed, (number, last)) in
        (100..).zip((0..KILLED.len()).flat_map(|number| LAST_CALLS.map(|last| (number, last))))
    {
        let (calls_before, commands) = KILLED[number];
        // Of two that follow each other one asks again.
        let asks_again = (number % 2 == 0) == (last == Trouble::Hangs);
        let mut play = Play::begin(&stage, seed).await;
        for (place, command) in commands.iter().enumerate() {
            if place + 1 == commands.len() {
                play.plan_kill(Kill { calls_before, last, asks_again });
            }
            play.step(*command).await;
        }
        assert!(!play.kills.is_empty(), "never killed in {commands:?}");
        // Whatever was left over shows in what comes next.
        play.step(WAITS).await;
        kills.append(&mut play.kills);
    }
    let killed = [
        "/account/subscription/change",
        "/account/subscription/checkout",
        "/account/subscription/select",
        "/billing/cancel",
        "/billing/reactivate",
        "confirm",
        "drain",
    ];
    assert!(killed.iter().all(|what| kills.contains(what)), "killed only in {kills:?}");
    let all = [
        "none -> active",
        "none -> trial",
        "active -> trial",
        "trial -> canceled",
        "trial -> active",
        "trial -> cancel_at_period_end",
        "active -> cancel_at_period_end",
        "past_due -> cancel_at_period_end",
        "cancel_at_period_end -> active",
        "cancel_at_period_end -> past_due",
        "cancel_at_period_end -> canceled",
        "active -> past_due",
        "past_due -> active",
        "past_due -> canceled",
        "canceled -> active",
    ];
    let missed: Vec<&&str> = all.iter().filter(|transition| !seen.contains(**transition)).collect();
    assert!(missed.is_empty(), "never seen: {missed:?}; seen: {seen:?}");
}
