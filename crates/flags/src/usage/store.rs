//! The SQL of what is known about the use of flags: a few reports in, whole apps out.

use std::collections::{BTreeSet, HashMap};

use kernel::{AppId, Result, Timestamp};
use store::{FromRow, Row, Tx, args};
use tenancy::app_exists;

use super::{
    CallSite, Discovery, Used, VariantUsage,
    gathered::{MAX_CALL_SITES, MAX_DISCOVERIES},
    report::{Sighting, Told, UsageReport},
};

const DISCOVER: &str = concat!(
    "INSERT INTO flag_discoveries (app_id, key, value_type, first_seen_at, last_seen_at, sightings) \
     SELECT app_id, key, value_type, first_seen_at, last_seen_at, sightings FROM {rows} WHERE ",
    app_exists!("rows.app_id"),
    " AND NOT EXISTS (SELECT 1 FROM flags WHERE flags.app_id = rows.app_id AND flags.key = rows.key) \
     ON CONFLICT (app_id, key) DO UPDATE SET value_type = COALESCE(excluded.value_type, flag_discoveries.value_type), \
     last_seen_at = CASE WHEN excluded.last_seen_at > flag_discoveries.last_seen_at \
     THEN excluded.last_seen_at ELSE flag_discoveries.last_seen_at END, \
     sightings = flag_discoveries.sightings + excluded.sightings"
);

const TRIM: &str = "DELETE FROM flag_discoveries WHERE app_id = $1 AND key IN (SELECT key FROM flag_discoveries \
                    WHERE app_id = $1 ORDER BY last_seen_at DESC, key LIMIT $2 OFFSET $3)";

const COUNT: &str = "INSERT INTO flag_evaluations (app_id, key, variant_index, day, evaluations) \
     SELECT app_id, key, variant_index, day, evaluations FROM {rows} \
     WHERE EXISTS (SELECT 1 FROM flags WHERE flags.app_id = rows.app_id AND flags.key = rows.key) \
     ON CONFLICT (app_id, key, variant_index, day) \
     DO UPDATE SET evaluations = flag_evaluations.evaluations + excluded.evaluations";

const USE: &str = "INSERT INTO flag_last_uses (app_id, key, last_evaluated_at) \
     SELECT app_id, key, last_evaluated_at FROM {rows} \
     WHERE EXISTS (SELECT 1 FROM flags WHERE flags.app_id = rows.app_id AND flags.key = rows.key) \
     ON CONFLICT (app_id, key) DO UPDATE SET last_evaluated_at = excluded.last_evaluated_at \
     WHERE excluded.last_evaluated_at > flag_last_uses.last_evaluated_at";

const SITE: &str = "INSERT INTO flag_call_sites (app_id, key, file, line, first_seen_at, last_seen_at) \
     SELECT app_id, key, file, line, seen_at, seen_at FROM {rows} \
     WHERE EXISTS (SELECT 1 FROM flags WHERE flags.app_id = rows.app_id AND flags.key = rows.key) \
     ON CONFLICT (app_id, key, file, line) DO UPDATE SET last_seen_at = excluded.last_seen_at";

const TRIM_SITES: &str = "DELETE FROM flag_call_sites WHERE app_id = $1 AND key = $2 AND (file, line) IN \
                          (SELECT file, line FROM flag_call_sites WHERE app_id = $1 AND key = $2 \
                          ORDER BY last_seen_at DESC, file, line LIMIT $3 OFFSET $4)";

const FORGET: &str = "DELETE FROM flag_evaluations WHERE (app_id, key, variant_index, day) IN \
                      (SELECT app_id, key, variant_index, day FROM flag_evaluations WHERE day < $1 LIMIT $2)";
const FORGOTTEN_AT_ONCE: i64 = 200;

/// Writes a few reports. Flags and apps that are gone meanwhile are passed over.
pub(super) fn write(tx: &mut Tx<'_>, reports: &[UsageReport]) -> Result<()> {
    let (mut seen, mut counts, mut uses, mut sites) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for UsageReport { app, key, told } in reports {
        match told {
            Told::Sighted(Sighting { value_type, first, last, count }) => {
                seen.push((*app, key, *value_type, *first, *last, *count));
            }
            Told::Evaluated { variant, day, count } => counts.push((*app, key, *variant, *day, *count)),
            Told::Used(at) => uses.push((*app, key, *at)),
            Told::CalledFrom { file, line, at } => sites.push((*app, key, file, *line, *at)),
        }
    }
    let names = ["app_id", "key", "value_type", "first_seen_at", "last_seen_at", "sightings"];
    tx.insert_all(DISCOVER, names, &seen)?;
    for app in seen.iter().map(|(app, ..)| *app).collect::<BTreeSet<_>>() {
        tx.exec(TRIM, &args![app, i64::MAX, MAX_DISCOVERIES as i64])?;
    }
    tx.insert_all(COUNT, ["app_id", "key", "variant_index", "day", "evaluations"], &counts)?;
    tx.insert_all(USE, ["app_id", "key", "last_evaluated_at"], &uses)?;
    tx.insert_all(SITE, ["app_id", "key", "file", "line", "seen_at"], &sites)?;
    for (app, key) in sites.iter().map(|(app, key, ..)| (*app, *key)).collect::<BTreeSet<_>>() {
        tx.exec(TRIM_SITES, &args![app, key, i64::MAX, MAX_CALL_SITES as i64])?;
    }
    Ok(())
}

/// Some counts of days before this one; how many.
pub(super) fn forget(tx: &mut Tx<'_>, before: i64) -> Result<u64> {
    tx.exec(FORGET, &args![before, FORGOTTEN_AT_ONCE])
}

impl FromRow for Discovery {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            id: None,
            key: row.get("key")?,
            discovered: true,
            value_type: row.get("value_type")?,
            first_seen_at: row.get("first_seen_at")?,
            last_seen_at: row.get("last_seen_at")?,
            sightings: row.get("sightings")?,
        })
    }
}

const DISCOVERIES: &str = "SELECT key, value_type, first_seen_at, last_seen_at, sightings FROM flag_discoveries \
                           WHERE app_id = $1 ORDER BY first_seen_at DESC, key";

pub(super) fn discoveries(tx: &mut Tx<'_>, app: AppId) -> Result<Vec<Discovery>> {
    tx.all(DISCOVERIES, &args![app])
}

const COUNTS: &str = "SELECT key, variant_index, CAST(sum(evaluations) AS BIGINT) AS evaluations FROM flag_evaluations \
                      WHERE app_id = $1 AND key >= $2 AND key <= $3 GROUP BY key, variant_index ORDER BY key, variant_index";
const LAST_USES: &str =
    "SELECT key, last_evaluated_at FROM flag_last_uses WHERE app_id = $1 AND key >= $2 AND key <= $3";
const SITES: &str = "SELECT key, file, line, last_seen_at FROM flag_call_sites \
                     WHERE app_id = $1 AND key >= $2 AND key <= $3 ORDER BY last_seen_at DESC, file, line";

/// By key, of all flags of the app or of one.
pub(super) fn used(tx: &mut Tx<'_>, app: AppId, only: Option<&str>) -> Result<HashMap<String, Used>> {
    // `~` sorts after everything that a key may hold.
    let (from, to) = only.map_or(("", "~"), |key| (key, key));
    let mut flags: HashMap<String, Used> = HashMap::new();
    tx.each(COUNTS, &args![app, from, to], &mut |row| {
        let variant = VariantUsage { variant_index: row.get("variant_index")?, evaluations: row.get("evaluations")? };
        flags.entry(row.get("key")?).or_default().variants.push(variant);
        Ok(())
    })?;
    tx.each(LAST_USES, &args![app, from, to], &mut |row| {
        let at: Timestamp = row.get("last_evaluated_at")?;
        flags.entry(row.get("key")?).or_default().last_evaluated_at = Some(at);
        Ok(())
    })?;
    tx.each(SITES, &args![app, from, to], &mut |row| {
        let site = CallSite { file: row.get("file")?, line: row.get("line")?, last_seen_at: row.get("last_seen_at")? };
        flags.entry(row.get("key")?).or_default().call_sites.push(site);
        Ok(())
    })?;
    Ok(flags)
}
