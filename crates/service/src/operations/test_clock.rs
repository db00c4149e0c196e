//! `/admin/test-clock`: the adjustable clock. These routes exist only when the test clock is switched on.

use std::time::Duration;

use kernel::{Code, Error, Problems, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::TestClock;
use tenancy::callers::Operator;
use web::{Json, Routes, State, Valid, Validate};

use crate::Core;

pub fn routes() -> Routes<Core> {
    Routes::new("Test clock")
        .get("/admin/test-clock", show, "Get the time of the test clock")
        .post("/admin/test-clock", advance, "Move the test clock forward and run what becomes due")
        // The stepping has its own limit of 60 real seconds.
        .timeout(Duration::from_secs(90))
        .answers(503, "Not everything that became due was done within 60 seconds; send the request again to continue")
}

#[derive(Serialize, JsonSchema)]
struct ClockAnswer {
    now: Timestamp,
}

/// Either how far to move, or where to.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Move {
    /// At most a hundred years: beyond it lies a slip of the finger.
    #[schemars(range(max = 100 * 366 * 24 * 3600_u64))]
    advance_seconds: Option<u64>,
    now: Option<Timestamp>,
}

impl Validate for Move {
    fn validate(&self, problems: &mut Problems) {
        let one = self.advance_seconds.is_some() != self.now.is_some();
        problems.check("advanceSeconds", one, "or now must be given, but not both");
    }
}

async fn show(_: Operator, State(core): State<Core>) -> Result<Json<ClockAnswer>> {
    Ok(Json(ClockAnswer { now: core.db.clock().now() }))
}

async fn advance(_: Operator, State(core): State<Core>, Valid(request): Valid<Move>) -> Result<Json<ClockAnswer>> {
    let clock = clock(&core)?;
    let now = match request {
        Move { now: Some(target), .. } => clock.advance_to(target).await?,
        Move { advance_seconds, .. } => clock.advance_by(Duration::from_secs(advance_seconds.unwrap_or(0))).await?,
    };
    Ok(Json(ClockAnswer { now }))
}

fn clock(core: &Core) -> Result<&TestClock> {
    core.test_clock.as_deref().ok_or_else(|| Error::new(Code::RouteNotFound, "The test clock is off."))
}
