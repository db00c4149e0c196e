//! `tenantry events export`: part after part, into one file, or for Parquet into a folder with a file for each part.
//!
//! Beside it stands a note of how far it is, by which an interrupted export is resumed.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{
    fs::{self, File},
    io::{AsyncSeekExt as _, AsyncWriteExt as _},
};

use super::{print, progress::ProgressBar};
use crate::{api::Api, cli::Output};

/// Where events are exported to.
pub enum Target {
    File(PathBuf),
    Folder(PathBuf),
}

/// How far an export is.
#[derive(Default, Serialize, Deserialize)]
struct Place {
    /// What was asked for: another question has other parts.
    #[serde(default)]
    path: String,
    parts: u64,
    events: u64,
    /// About how many events there are in all.
    total: u64,
    /// Of the file, when there is one.
    bytes: u64,
    /// Of the next part; `None` before the first one.
    cursor: Option<String>,
}

pub async fn run(api: &Api, path: &str, target: &Target, output: Output) -> Result<(), String> {
    let at = target.path();
    let cannot = |error: io::Error| format!("Cannot write {}: {error}", at.display());
    let note = at.with_added_extension("part");
    let begun: Option<Place> = match fs::read(&note).await {
        Ok(text) => {
            serde_json::from_slice(&text).map_err(|_| format!("{} is not the note of an export.", note.display()))?
        }
        Err(_) => None,
    };
    if begun.as_ref().is_some_and(|place| place.path != path) {
        return Err(format!(
            "{} was begun with other options. Repeat those to resume it, or delete it and {} to start over.",
            at.display(),
            note.display()
        ));
    }
    let mut writing = target.open(begun.as_ref()).await.map_err(cannot)?;
    let mut place = begun.unwrap_or_else(|| Place { path: path.to_owned(), ..Place::default() });
    let mut bar = None;
    loop {
        take_down(&place, &note).await.map_err(cannot)?;
        let asked = match &place.cursor {
            Some(cursor) => format!("{path}&cursor={cursor}"),
            None => path.to_owned(),
        };
        let part = api.part(&asked).await?;
        place.parts += 1;
        writing.add(&part.bytes, place.parts).await.map_err(cannot)?;
        place.events += part.events;
        place.bytes += part.bytes.len() as u64;
        place.total = part.total.unwrap_or(place.total);
        place.cursor = part.next;
        bar.get_or_insert_with(|| ProgressBar::new("Exporting", place.total, output)).show(place.events);
        if place.cursor.is_none() {
            break;
        }
    }
    if let Some(bar) = bar {
        bar.clear();
    }
    let _ = fs::remove_file(&note).await;
    let told = json!({ "file": at, "events": place.events, "parts": place.parts, "bytes": place.bytes });
    print(output, &told, |_| format!("Exported {} events ({} bytes) to {}.", place.events, place.bytes, at.display()));
    Ok(())
}

/// The old note or the new one is there, whole, whenever this is cut off.
async fn take_down(place: &Place, note: &Path) -> io::Result<()> {
    let new = note.with_added_extension("new");
    let mut file = private(File::options().create(true).truncate(true)).open(&new).await?;
    file.write_all(&serde_json::to_vec(place)?).await?;
    file.sync_all().await?;
    fs::rename(&new, note).await
}

/// For the owner's eyes only: events hold what people did.
fn private(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    options.write(true).mode(0o600)
}

impl Target {
    fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Folder(path) => path,
        }
    }

    /// Makes it, unless an export was begun.
    async fn open(&self, begun: Option<&Place>) -> io::Result<Writing> {
        match self {
            Self::File(path) => {
                let mut file = private(File::options().create_new(begun.is_none())).open(path).await?;
                // What was written after the last note is written again.
                file.set_len(begun.map_or(0, |place| place.bytes)).await?;
                file.seek(io::SeekFrom::End(0)).await?;
                Ok(Writing::File(file))
            }
            Self::Folder(path) => {
                if begun.is_none() {
                    fs::DirBuilder::new().mode(0o700).create(path).await?;
                }
                Ok(Writing::Folder(path.clone()))
            }
        }
    }
}

/// What is being written to.
enum Writing {
    File(File),
    Folder(PathBuf),
}

impl Writing {
    /// Whole and on disk when it returns.
    async fn add(&mut self, part: &[u8], number: u64) -> io::Result<()> {
        match self {
            Self::File(file) => {
                file.write_all(part).await?;
                file.sync_all().await
            }
            Self::Folder(path) => {
                let path = path.join(format!("part-{number:06}.parquet"));
                let mut file = private(File::options().create(true).truncate(true)).open(path).await?;
                file.write_all(part).await?;
                file.sync_all().await
            }
        }
    }
}
