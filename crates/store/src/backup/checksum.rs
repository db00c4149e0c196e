//! The last line of a backup: a digest of all before it, under a key. SQLite's own check does not notice a changed byte
//! inside a row; this does, and without the key nobody can change a row and fit the line to it. SQLite ignores what follows
//! its last page, so the file stays readable with its tools.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    hmac::{Context, HMAC_SHA256, Key, Tag},
};
use kernel::Secret;

/// What the last line of a backup is made with.
pub type BackupKey = Secret<[u8; 32]>;

const MARK: &[u8] = b"\ntenantry-backup hmac-sha256 ";
const HEX: usize = 64;
const LENGTH: u64 = (MARK.len() + HEX + 1) as u64;

/// Adds the line to a file that is otherwise complete.
pub(super) fn append(path: &Path, key: &BackupKey) -> io::Result<()> {
    let digest = hex(&digest(path, path.metadata()?.len(), key)?);
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(MARK)?;
    writeln!(file, "{digest}")
}

/// Whether the file ends in the line and the line tells the truth, by one of these keys.
pub(super) fn holds(path: &Path, keys: &[BackupKey]) -> io::Result<bool> {
    let Some(content) = path.metadata()?.len().checked_sub(LENGTH) else { return Ok(false) };
    let mut line = Vec::new();
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(content))?;
    file.read_to_end(&mut line)?;
    let told = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(b"\n"));
    let Some(told) = told else { return Ok(false) };
    for key in keys {
        if verify_slices_are_equal(hex(&digest(path, content, key)?).as_bytes(), told).is_ok() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn hex(tag: &Tag) -> String {
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(path: &Path, length: u64, key: &BackupKey) -> io::Result<Tag> {
    let mut context = Context::with_key(&Key::new(HMAC_SHA256, key.expose()));
    let mut content = File::open(path)?.take(length);
    let mut piece = vec![0; 256 * 1024];
    loop {
        match content.read(&mut piece)? {
            0 => break,
            read => context.update(&piece[..read]),
        }
    }
    Ok(context.sign())
}
