//! Where a batch comes from, and in which form: JSON, or a table of people.

use bytes::Bytes;
use kernel::{Code, Error, Result};
use web::BodyStream;

use super::fetch::Fetched;
use crate::batch::{CsvReader, PeopleTable, Piece, Splitter, Survey};

pub(super) enum Source<'a> {
    Body { body: &'a mut BodyStream, is_csv: bool },
    File(Box<Fetched>),
}

impl Source<'_> {
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>> {
        match self {
            Self::Body { body, .. } => body.next().await,
            Self::File(file) => file.next().await,
        }
    }

    pub(super) fn cutter(&self) -> Cutter {
        let is_csv = match self {
            Self::Body { is_csv, .. } => *is_csv,
            Self::File(file) => file.is_csv,
        };
        match is_csv {
            true => Cutter::Table(Box::new(Table::new())),
            false => Cutter::Json(Box::default()),
        }
    }

    /// The body of the request is not what is wrong when a file is.
    pub(super) fn blame(&self, error: Error) -> Error {
        let of_body = error.details().iter().any(|problem| problem.field == "body");
        match self {
            Self::File(_) if of_body || error.code() == Code::MalformedJson => {
                let problem = error.public().replacen("The body is", "it is", 1);
                let problem = problem.strip_prefix("body ").map_or(problem.clone(), |rest| format!("it {rest}"));
                Error::invalid(
                    "fileUrl",
                    format!("must lead to a list as JSON or to CSV: {}", problem.trim_end_matches('.')),
                )
            }
            _ => error,
        }
    }
}

/// Cuts a batch into its pieces.
pub(super) enum Cutter {
    Json(Box<Splitter>),
    Table(Box<Table>),
}

impl Cutter {
    pub(super) fn push(&mut self, bytes: &[u8], survey: &mut Survey, pieces: &mut Vec<Piece>) -> Result<()> {
        match self {
            Self::Json(splitter) => splitter.push(bytes, pieces),
            Self::Table(table) => {
                table.reader.push(bytes, &mut table.rows)?;
                table.cut(survey, pieces)
            }
        }
    }

    pub(super) fn finish(&mut self, survey: &mut Survey, pieces: &mut Vec<Piece>) -> Result<()> {
        match self {
            Self::Json(splitter) => splitter.finish(),
            Self::Table(table) => {
                table.reader.finish(&mut table.rows)?;
                table.cut(survey, pieces)?;
                let Some(people) = &table.people else {
                    return Err(Error::invalid("body", "must have a first row with the names of its columns"));
                };
                pieces.extend((0..people.workspaces()).map(|item| Piece::End { item }));
                Ok(())
            }
        }
    }
}

pub(super) struct Table {
    reader: CsvReader,
    rows: Vec<(usize, Vec<String>)>,
    /// Once the first row is read.
    people: Option<PeopleTable>,
    /// The workspace of the last row.
    item: Option<usize>,
}

impl Table {
    fn new() -> Self {
        Self { reader: CsvReader::new(), rows: Vec::new(), people: None, item: None }
    }

    fn cut(&mut self, survey: &mut Survey, pieces: &mut Vec<Piece>) -> Result<()> {
        for row in self.rows.drain(..) {
            let Some(people) = &mut self.people else {
                let (table, unknown) = PeopleTable::of(&row.1)?;
                for column in unknown {
                    survey.warn("row 1", &format!("the column {column:?} is not known and not used"));
                }
                self.people = Some(table);
                continue;
            };
            let piece = people.piece(&row)?;
            if let Piece::Tenant { item, .. } | Piece::User { item, .. } = &piece
                && let Some(before) = self.item.replace(*item).filter(|before| before != item)
            {
                // Its rows may come back later.
                pieces.push(Piece::Pause { item: before });
            }
            pieces.push(piece);
        }
        Ok(())
    }
}
