//! Random commands, times, callbacks and restarts against a model of the contract's table of states, with a payment provider
//! outside. The model knows days and names; whatever it says must be what the service says.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use testkit::{catalog::PLANS, on_both_engines, payments::Stage};

on_both_engines!(the_service_does_what_the_model_says);

const SEEDS: u64 = 4;
const COMMANDS: usize = 40;
/// A renewal fails, or is paid; a month passes.
const FAILS: u64 = 20;
const PAYS: u64 = 21;
const WAITS: u64 = 22;
/// Every transition of the table, whatever chance comes to.
const SURE: [&[u64]; 7] =
    [&[1, 0, WAITS, 1], &[0, 6], &[0, 2], &[2, 6, 7], &[2, FAILS, 6, 7, PAYS], &[2, FAILS, WAITS], &[2, 6, WAITS]];
/// No number of these is a number of the days that anything lasts, so that nothing happens just when something ends.
const STEP: i64 = 25 * 3_600;
const DAY: i64 = 24 * 3_600;
const WEEK: i64 = 7 * DAY;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Trial { until: i64 },
    Active,
    PastDue { since: i64 },
    Ending { at: i64, trial: bool, unpaid: Option<i64> },
    Canceled,
}

use Standing::{Active, Canceled, Ending, PastDue, Trial};

#[derive(Clone, Debug)]
struct Model {
    standing: Option<Standing>,
    plan: &'static str,
    gate: bool,
    scheduled: Option<i64>,
    tried: bool,
    /// At the provider: whether it ends with its period, and when that is.
    there: Option<(bool, i64)>,
    seen: BTreeSet<String>,
}

impl Model {
    fn runs(&self) -> bool {
        !matches!(self.standing, None | Some(Canceled))
    }

    fn unpaid(&self) -> Option<i64> {
        match self.standing {
            Some(PastDue { since }) => Some(since),
            Some(Ending { unpaid, .. }) => unpaid,
            _ => None,
        }
    }

    /// When the period ends that is running, whether or not the provider has begun it.
    fn period_end(&self, now: i64) -> i64 {
        let (_, end) = self.there.expect("it runs at the provider");
        if end > now { end } else { end + ((now - end) / WEEK + 1) * WEEK }
    }

    fn become_free(&mut self) {
        (self.standing, self.plan, self.gate, self.scheduled, self.there) = (Some(Active), "free", false, None, None);
    }

    fn end(&mut self) {
        (self.standing, self.scheduled, self.there) = (Some(Canceled), None, None);
    }

    /// What is due, each at its own time.
    fn pass(&mut self, now: i64) {
        loop {
            let dunning = self.unpaid().map(|since| since + if self.gate { 30 * DAY } else { 14 * DAY });
            let own = match self.standing {
                Some(Trial { until }) => Some(until),
                Some(Ending { at, .. }) => Some(at),
                Some(Active | PastDue { .. }) => self.scheduled,
                _ => return,
            };
            let Some(due) = own.into_iter().chain(dunning).min().filter(|due| *due <= now) else { return };
            match self.standing {
                _ if self.scheduled.is_some_and(|at| at <= due) => self.become_free(),
                Some(Trial { .. }) => {
                    self.end();
                    self.gate = true;
                }
                Some(Ending { at, .. }) if at <= due => self.end(),
                _ if self.gate => self.end(),
                _ => self.gate = true,
            }
        }
    }

    /// The period that the provider has just begun.
    fn align(&mut self, end: i64) {
        if let Some(Ending { at, trial: false, .. }) = &mut self.standing {
            *at = end;
        }
        if let Some(at) = &mut self.scheduled {
            *at = end;
        }
    }

    fn fail(&mut self, now: i64) {
        match &mut self.standing {
            Some(Active) => self.standing = Some(PastDue { since: now }),
            Some(Ending { unpaid, .. }) if unpaid.is_none() => *unpaid = Some(now),
            _ => {}
        }
    }

    fn settle_bill(&mut self) {
        if self.unpaid().is_none() {
            return;
        }
        self.gate = false;
        match &mut self.standing {
            Some(Ending { unpaid, .. }) => *unpaid = None,
            standing => *standing = Some(Active),
        }
    }

    /// Asked for at the provider, or in its portal.
    fn cancel(&mut self, at: i64) {
        let unpaid = self.unpaid();
        match self.standing {
            Some(Trial { until }) => self.standing = Some(Ending { at: until, trial: true, unpaid }),
            Some(Active | PastDue { .. }) => self.standing = Some(Ending { at, trial: false, unpaid }),
            _ => return,
        }
        self.scheduled = None;
    }

    fn reactivate(&mut self) {
        self.scheduled = None;
        let Some(Ending { at, trial, unpaid }) = self.standing else { return };
        self.standing = Some(match unpaid {
            Some(since) => PastDue { since },
            None if trial => Trial { until: at },
            None => Active,
        });
    }

    fn status(&self) -> Option<&'static str> {
        Some(match self.standing? {
            Trial { .. } => "trial",
            Active => "active",
            PastDue { .. } => "past_due",
            Ending { .. } => "cancel_at_period_end",
            Canceled => "canceled",
        })
    }
}

struct Play {
    stage: Stage,
    model: Model,
    subscription: Option<String>,
    chance: u64,
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
        Self { stage: Stage { acme, ..stage.clone() }, model, subscription: None, chance: seed }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) % sides
    }

    async fn post(&self, path: &str, body: Value, expected: u16) -> Value {
        let answer = self.stage.acme.owner().post(path, body).await;
        assert_eq!(answer.status(), expected, "{path} {:?} {}", self.model, answer.body());
        serde_json::from_str(answer.body()).unwrap_or_default()
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
            self.stage.confirm(&session).await.expect(200);
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
        self.stage.app.advance(Duration::from_secs((STEP * number).unsigned_abs())).await;
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
            11 => {
                let url = self.stage.provider.url().to_owned();
                self.stage.app.restart_with(|options| options.payprovider_url = url).await;
            }
            _ => {
                let days = i64::try_from(self.roll(9)).expect("a few");
                self.pass_days(days + 1).await;
            }
        }
        // What was told arrives in the wrong order.
        for event in self.stage.provider.take_events().iter().rev() {
            self.stage.tell(event).await.expect(200);
        }
        self.stage.app.drain().await;
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
    let mut seen = BTreeSet::new();
    for seed in 1..=SEEDS {
        let mut play = Play::begin(&stage, seed).await;
        for _ in 0..COMMANDS {
            let command = play.roll(13);
            play.step(command).await;
        }
        seen.append(&mut play.model.seen);
    }
    for (seed, commands) in (SEEDS + 1..).zip(SURE) {
        let mut play = Play::begin(&stage, seed).await;
        for command in commands {
            play.step(*command).await;
        }
        seen.append(&mut play.model.seen);
    }
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
