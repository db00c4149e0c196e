//! The evaluator alone, on this thread.

use std::{hint::black_box, time::Duration};

use bench::{
    Result, process,
    report::{Aim, Bound},
};
use flags::{
    model::{Definition, FlagId},
    rules::{Attributes, Flag, Groups, OnDemand, Resolved, SentContext, evaluate},
};
use serde_json::{Value, json};

use super::sample;

const TIMES: u32 = 2_000;
/// Fifty ticks of what Linux tells.
const LONG_ENOUGH: Duration = Duration::from_millis(500);

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

/// Nanoseconds of processor time per call, so that others on the machine matter little.
fn time(mut call: impl FnMut()) -> Result<f64> {
    (0..TIMES / 10).for_each(|_| call());
    let (me, mut calls) = (std::process::id(), 0);
    let started = process::cpu_time(me)?;
    loop {
        (0..TIMES).for_each(|_| call());
        calls += TIMES;
        let used = process::cpu_time(me)? - started;
        if used >= LONG_ENOUGH {
            return Ok(used.as_secs_f64() * 1e9 / f64::from(calls));
        }
    }
}

pub fn run(aims: &mut Vec<Aim>) -> Result<()> {
    let (flags, attributes) = compile();
    let body = sample::context();
    let sent = SentContext::read(body.as_bytes()).expect("the sample is a context");
    let identity = sent.context.identity();
    let per_flag = time(|| {
        let seen = OnDemand { attributes: &attributes, context: black_box(&sent.context) };
        for flag in &flags {
            black_box(evaluate(flag, &seen, identity.as_deref()).outcome);
        }
    })? / sample::FLAGS as f64;
    let in_bulk = time(|| {
        let seen = Resolved::new(&attributes, black_box(&sent.context));
        for flag in &flags {
            black_box(evaluate(flag, &seen, identity.as_deref()).outcome);
        }
    })? / sample::FLAGS as f64;
    let reading = time(|| {
        black_box(SentContext::read(black_box(body.as_bytes()))).ok();
    })?;
    let tree = time(|| {
        black_box(serde_json::from_slice::<Value>(black_box(body.as_bytes()))).ok();
    })?;
    println!("In process, mean over {} flags with conditions and rollouts:\n", sample::FLAGS);
    println!("  one evaluation, attributes on demand  {per_flag:.0} ns");
    println!("  one evaluation within a bulk          {in_bulk:.0} ns");
    println!("  reading the context                   {reading:.0} ns (a tree of serde_json: {tree:.0} ns)");
    aims.push(Aim::new("one evaluation in process", per_flag / 1e3, Bound::Below(1.0), " µs"));
    Ok(())
}
