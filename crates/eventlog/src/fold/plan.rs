//! What a fold writes, worked out in memory.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, Hash, RandomState},
    sync::Arc,
};

use kernel::{Error, Result, Timestamp};
use serde_json::{Map, Value};

use super::{
    memory::{Bucket, Had, Known},
    store::WaitingArrival,
};
use crate::{
    grain::Grain,
    ingest::{ArrivedEvent, OWN_SOURCE},
    parameters::{Feed, entity_digest, feed, is_audited, traced},
};

/// An event with its parameters, and the arrival it is in.
pub struct Event {
    pub arrival: usize,
    pub arrived: ArrivedEvent,
    pub parameters: Map<String, Value>,
}

impl Event {
    /// Whether it has a value that is counted.
    pub fn is_counted(&self) -> bool {
        self.parameters.values().any(|value| matches!(feed(value), Some(Feed::Value(_))))
    }

    /// Where it counts; `name` is the number of its name.
    pub fn buckets(&self, name: i64) -> [Bucket; Grain::ALL.len()] {
        Grain::ALL.map(|grain| (name, grain.number(), grain.start(self.arrived.at)))
    }
}

/// Events that wait together.
#[derive(Clone)]
pub struct Arrival {
    pub id: String,
    /// How many of them are folded.
    pub folded: usize,
    pub created_at: Timestamp,
    pub events: Arc<Vec<ArrivedEvent>>,
}

impl Arrival {
    /// The events as they were read, unless it is the arrival that is remembered.
    pub fn of(waiting: WaitingArrival, had: Option<&Had>) -> Result<Self> {
        let events = match (&waiting.events, had.filter(|had| had.arrival == waiting.id)) {
            (Some(text), _) => Arc::new(serde_json::from_str(text).map_err(Error::internal)?),
            (None, Some(had)) => Arc::clone(&had.events),
            (None, None) => return Err(Error::internal("an arrival disappeared while it was read")),
        };
        let folded = usize::try_from(waiting.folded).map_err(Error::internal)?;
        Ok(Self { id: waiting.id, folded, created_at: waiting.created_at, events })
    }
}

/// The first events that are not folded yet, and the arrivals they are in.
pub struct Next {
    pub arrivals: Vec<Arrival>,
    pub events: Vec<Event>,
    /// Whether they write as many rows as they may.
    pub is_full: bool,
}

/// About as many events as write `most` rows. What is behind them is not read.
pub fn next(waiting: Vec<WaitingArrival>, had: Option<&Had>, most: usize) -> Result<Next> {
    let (mut arrivals, mut events, mut written) = (Vec::new(), Vec::new(), Written::default());
    for (number, waiting) in waiting.into_iter().enumerate() {
        let arrival = Arrival::of(waiting, had)?;
        for arrived in arrival.events.iter().skip(arrival.folded) {
            if written.rows >= most {
                break;
            }
            let parameters: Map<String, Value> = serde_json::from_str(&arrived.parameters).map_err(Error::internal)?;
            written.add(arrived, &parameters);
            events.push(Event { arrival: number, arrived: arrived.clone(), parameters });
        }
        arrivals.push(arrival);
        if written.rows >= most {
            break;
        }
    }
    Ok(Next { arrivals, events, is_full: written.rows >= most })
}

/// About what events write: each a row, the first of an hour what it feeds, and the first of an entity its first occurrence.
#[derive(Default)]
struct Written {
    rows: usize,
    hasher: RandomState,
    seen: HashSet<u64>,
}

impl Written {
    fn add(&mut self, event: &ArrivedEvent, parameters: &Map<String, Value>) {
        self.rows += 1;
        if self.is_new((&event.name, Grain::Hour.start(event.at))) {
            self.rows += parameters.len();
        }
        for (parameter, value) in parameters {
            if let Some(entity) = traced(parameter, value)
                && self.is_new((&event.name, parameter, entity))
            {
                self.rows += 1;
            }
        }
    }

    fn is_new(&mut self, what: impl Hash) -> bool {
        self.seen.insert(self.hasher.hash_one(what))
    }
}

/// One fold.
#[derive(Default)]
pub struct Plan {
    /// Before the fold.
    pub expected: i64,
    pub new_parameters: Vec<(String, i64)>,
    pub buckets: HashMap<Bucket, i64>,
    pub sums: HashMap<(Bucket, i64), f64>,
    /// Counters of values that have changed.
    pub counters: Vec<ChangedPart>,
    /// By entity and event.
    pub firsts: HashMap<(String, i64), Times>,
    pub rows: Vec<Row>,
    /// Arrivals that are folded to their end.
    pub finished: Vec<String>,
    /// One that is folded in part.
    pub begun: Option<Arrival>,
    /// Whether events are left over because of what the others write.
    pub is_full: bool,
}

/// A part of the counters of a parameter in a bucket, as it is stored.
pub struct ChangedPart {
    pub bucket: Bucket,
    pub parameter: i64,
    pub part: i64,
    pub counts: String,
}

/// Where values were counted, and how many parts of counters that changes.
#[derive(Default)]
struct Counted {
    counters: HashSet<(Bucket, i64)>,
    parts: usize,
}

/// When an event happened to an entity, which is known by a parameter.
pub struct Times {
    pub parameter: i64,
    pub first: i64,
    pub last: i64,
}

/// An event as it is kept.
pub struct Row {
    pub event: ArrivedEvent,
    pub name: i64,
    pub ingested_at: Timestamp,
    pub audited: bool,
}

impl Plan {
    /// Of as many of the events as write `most` rows, unless a single one writes more.
    pub fn of(known: &mut Known, revision: i64, arrivals: &[Arrival], events: Vec<Event>, most: usize) -> Result<Self> {
        let mut plan = Self { expected: revision, ..Self::default() };
        let mut folded: HashMap<usize, usize> = HashMap::new();
        let mut counted = Counted::default();
        for event in events {
            if plan.writes() + counted.parts >= most {
                plan.is_full = true;
                break;
            }
            *folded.entry(event.arrival).or_default() += 1;
            plan.add(known, event, arrivals, &mut counted)?;
        }
        for (bucket, parameter) in counted.counters {
            for (part, counts) in known.counters(bucket, parameter).written()? {
                plan.counters.push(ChangedPart { bucket, parameter, part, counts });
            }
        }
        for (number, arrival) in arrivals.iter().enumerate() {
            let Some(more) = folded.get(&number) else { break };
            match arrival.folded + more {
                done if done >= arrival.events.len() => plan.finished.push(arrival.id.clone()),
                done => plan.begun = Some(Arrival { folded: done, ..arrival.clone() }),
            }
        }
        Ok(plan)
    }

    /// The revision once it is written.
    pub fn revision(&self) -> i64 {
        self.expected + 1
    }

    fn writes(&self) -> usize {
        let aggregates = self.buckets.len() + self.sums.len();
        aggregates + self.firsts.len() + self.rows.len() + self.new_parameters.len()
    }

    fn add(&mut self, known: &mut Known, event: Event, arrivals: &[Arrival], counted: &mut Counted) -> Result<()> {
        let name = known.name(&event.arrived.name)?;
        let buckets = event.buckets(name);
        let Event { arrival, arrived, parameters } = event;
        let at = arrived.at;
        for bucket in buckets {
            *self.buckets.entry(bucket).or_default() += 1;
        }
        for (parameter_name, value) in &parameters {
            let parameter = known.parameter(parameter_name, &mut self.new_parameters);
            for bucket in buckets {
                match feed(value) {
                    Some(Feed::Number(number)) => *self.sums.entry((bucket, parameter)).or_default() += number,
                    Some(Feed::Value(text)) if known.count(bucket, parameter, text) => {
                        counted.counters.insert((bucket, parameter));
                        counted.parts += 1;
                    }
                    Some(Feed::Value(_)) => {}
                    None => break,
                }
            }
            if let Some(value) = traced(parameter_name, value) {
                let entity = (entity_digest(parameter_name, &value), name);
                let times = self.firsts.entry(entity).or_insert(Times { parameter, first: at, last: at });
                (times.first, times.last) = (at.min(times.first), at.max(times.last));
            }
        }
        let audited = arrived.source.as_deref() == Some(OWN_SOURCE) || is_audited(&parameters);
        self.rows.push(Row { event: arrived, name, ingested_at: arrivals[arrival].created_at, audited });
        Ok(())
    }
}
