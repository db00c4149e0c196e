//! A child process of the same program: the part that is measured, apart from the part that measures.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::Result;

/// Ended when it is dropped.
pub struct Child {
    process: std::process::Child,
    /// The line of JSON that it printed once it was ready.
    pub told: Value,
}

impl Child {
    /// Starts the benchmark that is running with these arguments instead, and waits for its first line. Its log goes nowhere,
    /// but it is written.
    pub fn start(arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        Self::start_program(command.args(std::env::args_os().nth(1)).args(arguments))
    }

    /// The same of another program.
    pub fn start_program(command: &mut Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let out = process.stdout.take().ok_or("no output")?;
        let mut child = Self { process, told: Value::Null };
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        child.told =
            serde_json::from_str(&line).map_err(|_| format!("the child failed; run {command:?} to see why"))?;
        Ok(child)
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// A text that it told; empty when it told none of this name.
    pub fn text(&self, name: &str) -> String {
        self.told[name].as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
