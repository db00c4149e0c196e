//! The way of one context through one flag, step by step, by the very code that evaluates.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{
    Attributes, Context, Flag, Groups, OnDemand, Reason,
    compile::{CompiledBranch, FlagBody},
    evaluate::{Seen as _, evaluate, is_inside},
    rollout::bucket,
};
use crate::model::{Branch, Definition, FlagId, Operator, State, as_people_write_it};

/// Why a flag evaluates to what it does for somebody.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FlagExplanation")]
pub struct Explanation {
    pub flag: String,
    pub state: State,
    /// Absent when the flag cannot be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    pub enabled: bool,
    pub variant_index: i32,
    /// In one sentence.
    pub reason: String,
    /// Why the flag cannot be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `INVALID_TOKEN` when the access token was ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Absent unless the state is `on-with-rule`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutTrace>,
    /// The branches that were looked at, up to the first that matched.
    pub branches: Vec<BranchTrace>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutTrace {
    #[serde(serialize_with = "as_people_write_it")]
    pub rollout_pct: f64,
    /// `user.id`, else `tenant.id`; `null` when the context has neither.
    pub identity: Option<String>,
    /// The identity's bucket of 10,000; it is inside when below `rolloutPct` times 100.
    pub bucket: Option<u32>,
    pub inside: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BranchTrace {
    pub index: usize,
    pub matched: bool,
    pub conditions: Vec<ConditionTrace>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionTrace {
    pub attribute: String,
    pub operator: Operator,
    pub values: Vec<Value>,
    /// Whether the context has the attribute at all.
    pub present: bool,
    /// The value that the condition saw; `null` when there was none.
    pub seen: Value,
    pub matched: bool,
}

pub fn explain(id: FlagId, definition: &Definition, groups: &Groups, context: &Context<'_>) -> Explanation {
    let mut attributes = Attributes::default();
    let flag = Flag::compile(id, definition, groups, &mut attributes);
    let seen = OnDemand { attributes: &attributes, context };
    let identity = context.identity();
    let verdict = evaluate(&flag, &seen, identity.as_deref());
    let answer: Value = serde_json::from_slice(&verdict.outcome.body).unwrap_or_default();
    let (rollout, branches) = match (&flag.body, &definition.rule) {
        (FlagBody::Ruled { buckets, branches: compiled, .. }, Some(rule)) => {
            let written = match rule.group_ref.as_ref().and_then(|group| groups.get(group)) {
                Some(branches) => &**branches,
                None => &rule.branches[..],
            };
            let rollout = RolloutTrace {
                rollout_pct: rule.rollout_pct,
                bucket: identity.as_deref().map(|identity| bucket(&flag.key, identity)),
                inside: is_inside(*buckets, &flag.key, identity.as_deref()),
                identity: identity.as_deref().map(str::to_owned),
            };
            (Some(rollout), trace(written, compiled, &seen))
        }
        _ => (None, Vec::new()),
    };
    Explanation {
        flag: definition.key.clone(),
        state: definition.state,
        value: answer.get("value").cloned(),
        enabled: verdict.outcome.enabled,
        variant_index: verdict.outcome.variant,
        reason: sentence(verdict.reason, verdict.outcome.variant),
        error: answer.get("error").and_then(Value::as_str).map(str::to_owned),
        error_code: None,
        rollout,
        branches,
    }
}

/// Written and compiled branches stand in the same order.
fn trace(written: &[Branch], compiled: &[CompiledBranch], seen: &OnDemand<'_>) -> Vec<BranchTrace> {
    let mut traces = Vec::new();
    for (index, (written, compiled)) in written.iter().zip(compiled).enumerate() {
        let conditions = written.conditions.iter().zip(&compiled.conditions).map(|(written, compiled)| {
            let value = seen.value(compiled.attribute);
            ConditionTrace {
                attribute: written.attribute.clone(),
                operator: written.operator,
                values: written.values.clone(),
                present: value.is_some(),
                seen: serde_json::to_value(value).unwrap_or_default(),
                matched: compiled.matches(value),
            }
        });
        let matched = compiled.matches(seen);
        traces.push(BranchTrace { index, matched, conditions: conditions.collect() });
        if matched {
            break;
        }
    }
    traces
}

fn sentence(reason: Reason, variant: i32) -> String {
    match reason {
        Reason::Off => "The flag is off.".into(),
        Reason::On => "The flag is on for everybody.".into(),
        Reason::Matched { split: false } => format!("Branch {variant} is the first that matches."),
        Reason::Matched { split: true } => {
            format!("Branch {variant} is the first that matches, and the identity is inside the rollout.")
        }
        Reason::Otherwise => "No branch matches.".into(),
        Reason::OutsideRollout => "The identity is outside the rollout, or there is none.".into(),
        Reason::Broken => "The flag cannot be evaluated.".into(),
    }
}
