//! `POST /admin/operator-key`: a new key for the operator API.

use kernel::{Result, Secret, Timestamp, text_types};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::callers::Operator;
use web::{Json, Routes, State, ValidOrNone, Validate};

use crate::Core;

text_types! {
    /// A key that is given, not generated, must not be guessable.
    OwnOperatorKey {
        "minLength": 32,
        "maxLength": 512,
        "pattern": "^[!-~]*$",
        "x-message": "must have 32 to 512 visible ASCII characters",
    }
}

pub fn routes() -> Routes<Core> {
    Routes::new("Operations").post("/admin/operator-key", replace, "Replace the operator key").description(
        "The new key is generated and kept in operator.key in the data folder of the node that answers, unless one is \
         given. It counts at once on every node; the one before works for another hour, or with now no longer.",
    )
}

#[derive(Clone, Default, Deserialize, JsonSchema)]
struct NewKey {
    /// End the key before at once, because somebody else may have it.
    #[serde(default)]
    now: bool,
    /// The new key; one is generated when it is missing.
    key: Option<OwnOperatorKey>,
}

impl Validate for NewKey {}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Replaced {
    /// Shown this once.
    key: String,
    /// Until when the key before works.
    previous_until: Timestamp,
}

async fn replace(
    caller: Operator,
    State(core): State<Core>,
    ValidOrNone(new): ValidOrNone<NewKey>,
) -> Result<Json<Replaced>> {
    let new = new.unwrap_or_default();
    let replacement = core
        .operator_key_file
        .replace(&core.db.by(&caller), new.key.map(|key| Secret::new(key.as_str().to_owned())), new.now)
        .await?;
    Ok(Json(Replaced { key: replacement.key.into_exposed(), previous_until: replacement.previous_until }))
}
