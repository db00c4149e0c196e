//! Test builds write down each distinct statement with the engine it ran on; the test command fails when a text was seen
//! on one engine only.

use std::{
    collections::HashSet,
    fs::File,
    io::Write as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

use crate::{ColumnType, EngineName, dialect};

pub(crate) struct Recorder(Option<Mutex<Sheet>>);

struct Sheet {
    seen: HashSet<&'static str>,
    file: File,
}

impl Recorder {
    /// Records into the folder named by `TENANTRY_RECORD_STATEMENTS`, one file per process, engine and database.
    pub(crate) fn new(engine: EngineName) -> Self {
        let Some(folder) = std::env::var_os("TENANTRY_RECORD_STATEMENTS") else { return Self(None) };
        let name = format!("{engine}-{}.txt", std::process::id());
        let file = File::options().create(true).append(true).open(Path::new(&folder).join(name));
        let file = file.expect("the folder for recorded statements exists and can be written");
        Self(Some(Mutex::new(Sheet { seen: HashSet::new(), file })))
    }

    /// The columns of the statement's input rows are written into its token, so that it can be prepared by itself:
    /// `{rows: a text, b int}`.
    pub(crate) fn saw(&self, sql: &'static str, columns: &[(&str, ColumnType)]) {
        let Some(sheet) = &self.0 else { return };
        let mut sheet = sheet.lock().unwrap_or_else(PoisonError::into_inner);
        if sheet.seen.insert(sql) {
            let line = serde_json::Value::from(dialect::name_columns(sql, columns)).to_string() + "\n";
            sheet.file.write_all(line.as_bytes()).expect("a recorded statement can be written");
        }
    }
}
