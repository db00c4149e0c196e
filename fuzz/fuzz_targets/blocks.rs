//! Blocks of events: whatever is damaged fails with one error, and what can be read can be packed again.
#![no_main]

use std::{cell::RefCell, panic, process};

use eventlog::{Block, LoggedEventId, encode_block};
use kernel::{Code, Result};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

thread_local! {
    /// What the last panic said, and where.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The reader catches the panics of the Parquet library; libFuzzer's own hook would end the process before it can.
fn let_panics_unwind() {
    panic::set_hook(Box::new(|panic| LAST_PANIC.set(panic.to_string())));
}

fuzz_target!(init: let_panics_unwind(), |bytes: &[u8]| {
    // What comes as far as this escaped the reader, or is an assertion of ours.
    if panic::catch_unwind(|| examine(bytes)).is_err() {
        eprintln!("{}", LAST_PANIC.take());
        process::abort();
    }
});

fn examine(bytes: &[u8]) {
    let Some(block) = judged(Block::open(bytes.to_vec())) else { return };
    let length = block.length();
    assert!(judged(block.times()).is_none_or(|times| times.len() == length));
    let _ = judged(block.has(LoggedEventId::from_u128(3)));
    for name in ["userId", "n", "any"] {
        for wanted in [json!("u1"), json!(1), json!(true)] {
            assert!(judged(block.matching(name, &wanted)).is_none_or(|fits| fits.len() == length));
        }
        assert!(judged(block.naming(name, "u1")).is_none_or(|names| names.len() == length));
        assert!(judged(block.addends(name)).is_none_or(|addends| addends.len() == length));
    }
    let Some(events) = judged(block.events(7)) else { return };
    assert_eq!(events.len(), length);
    let again = encode_block(&events).and_then(Block::open).and_then(|block| block.events(7));
    assert_eq!(again.expect("what can be read can be packed"), events);
}

fn judged<T>(read: Result<T>) -> Option<T> {
    read.inspect_err(|error| assert_eq!(error.code(), Code::EventsDamaged, "{error:?}")).ok()
}
