//! The SQL of templates.

use ::store::{Tx, args};
use kernel::{AppId, Result};

use super::TemplateName;

pub(super) fn template(tx: &mut Tx<'_>, app: AppId, name: TemplateName) -> Result<Option<String>> {
    let found: Option<(String,)> =
        tx.opt("SELECT content FROM mail_templates WHERE app_id = $1 AND name = $2", &args![app, name])?;
    Ok(found.map(|(content,)| content))
}

pub(super) fn put_template(tx: &mut Tx<'_>, app: AppId, name: TemplateName, content: &str) -> Result<()> {
    tx.run(
        "INSERT INTO mail_templates (app_id, name, content, updated_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (app_id, name) DO UPDATE SET content = excluded.content, updated_at = excluded.updated_at",
        &args![app, name, content, tx.now()],
    )
}

pub(super) fn delete_template(tx: &mut Tx<'_>, app: AppId, name: TemplateName) -> Result<()> {
    tx.run("DELETE FROM mail_templates WHERE app_id = $1 AND name = $2", &args![app, name])
}

/// At most a handful of rows.
pub(super) fn purge(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.run("DELETE FROM mail_templates WHERE app_id = $1", &args![app])
}
