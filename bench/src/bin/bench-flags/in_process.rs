//! The evaluator alone, on this thread.

use std::hint::black_box;

use bench::report::{Aim, Bound};
use flags::{
    model::{Definition, FlagId},
    rules::{Attributes, Flag, Groups, OnDemand, Resolved, Sent, evaluate},
};
use kernel::Ticker;
use serde_json::{Value, json};

use crate::sample;

const TIMES: u32 = 20_000;

fn compile() -> (Vec<Flag>, Attributes) {
    let mut attributes = Attributes::default();
    let flags = (0..sample::FLAGS).map(|number| {
        let mut whole = json!({ "description": "", "valueType": "boolean", "offValue": false, "onValue": true });
        for (member, value) in sample::flag(number).as_object().into_iter().flatten() {
            whole[member] = value.clone();
        }
        let definition: Definition = serde_json::from_value::<Definition>(whole).expect("the sample is a definition");
        Flag::compile(FlagId::from_u128(number as u128), &definition, &Groups::new(), &mut attributes)
    });
    (flags.collect(), attributes)
}

/// Nanoseconds per call.
fn time(mut call: impl FnMut()) -> f64 {
    (0..TIMES / 10).for_each(|_| call());
    let started = Ticker.now();
    (0..TIMES).for_each(|_| call());
    Ticker.since(started).as_secs_f64() * 1e9 / f64::from(TIMES)
}

pub fn run(aims: &mut Vec<Aim>) {
    let (flags, attributes) = compile();
    let body = sample::context();
    let sent = Sent::read(body.as_bytes()).expect("the sample is a context");
    let identity = sent.context.identity();
    let per_flag = time(|| {
        let seen = OnDemand { attributes: &attributes, context: black_box(&sent.context) };
        for flag in &flags {
            black_box(evaluate(flag, &seen, identity.as_deref()).outcome);
        }
    }) / sample::FLAGS as f64;
    let in_bulk = time(|| {
        let seen = Resolved::new(&attributes, black_box(&sent.context));
        for flag in &flags {
            black_box(evaluate(flag, &seen, identity.as_deref()).outcome);
        }
    }) / sample::FLAGS as f64;
    let reading = time(|| {
        black_box(Sent::read(black_box(body.as_bytes()))).ok();
    });
    let tree = time(|| {
        black_box(serde_json::from_slice::<Value>(black_box(body.as_bytes()))).ok();
    });
    println!("In process, mean over {} flags with conditions and rollouts:\n", sample::FLAGS);
    println!("  one evaluation, attributes on demand  {per_flag:.0} ns");
    println!("  one evaluation within a bulk          {in_bulk:.0} ns");
    println!("  reading the context                   {reading:.0} ns (a tree of serde_json: {tree:.0} ns)");
    aims.push(Aim::new("one evaluation in process", per_flag / 1e3, Bound::Below(1.0), " µs"));
}
