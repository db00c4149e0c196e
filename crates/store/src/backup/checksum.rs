//! The last line of a backup: a digest of all before it. SQLite's own check does not notice a changed byte inside a
//! row; this does. SQLite ignores what follows its last page, so the file stays readable with its tools.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use aws_lc_rs::digest::{Context, SHA256};

const MARK: &[u8] = b"\ntenantry-backup sha256 ";
const HEX: usize = 64;
const LENGTH: u64 = (MARK.len() + HEX + 1) as u64;

/// Adds the line to a file that is otherwise complete.
pub(super) fn append(path: &Path) -> io::Result<()> {
    let digest = digest(path, path.metadata()?.len())?;
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(MARK)?;
    writeln!(file, "{digest}")
}

/// Whether the file ends in the line and the line tells the truth.
pub(super) fn holds(path: &Path) -> io::Result<bool> {
    let Some(content) = path.metadata()?.len().checked_sub(LENGTH) else { return Ok(false) };
    let mut line = Vec::new();
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(content))?;
    file.read_to_end(&mut line)?;
    let told = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(b"\n"));
    Ok(told == Some(digest(path, content)?.as_bytes()))
}

fn digest(path: &Path, length: u64) -> io::Result<String> {
    let mut context = Context::new(&SHA256);
    let mut content = File::open(path)?.take(length);
    let mut piece = vec![0; 256 * 1024];
    loop {
        match content.read(&mut piece)? {
            0 => break,
            read => context.update(&piece[..read]),
        }
    }
    Ok(context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}
