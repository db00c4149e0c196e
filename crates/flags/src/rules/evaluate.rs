//! What a flag evaluates to for whoever asks: first match wins, inside the rollout or not at all.

use super::{
    Attribute, Attributes, Context, Flag, FlagResult, Json,
    compile::{CompiledBranch, CompiledCondition, FlagBody},
    rollout::{BUCKETS, bucket},
};

/// Where an evaluation finds the values of attributes.
pub trait Seen<'c> {
    fn value(&self, attribute: Attribute) -> Option<&'c Json<'c>>;
}

/// Looks each attribute up when a condition asks: for one flag.
pub struct OnDemand<'c> {
    pub attributes: &'c Attributes,
    pub context: &'c Context<'c>,
}

impl<'c> Seen<'c> for OnDemand<'c> {
    fn value(&self, attribute: Attribute) -> Option<&'c Json<'c>> {
        let (root, path) = self.attributes.path(attribute);
        self.context.part(root).find(path)
    }
}

/// Every attribute looked up once: for many flags.
pub struct Resolved<'c>(Vec<Option<&'c Json<'c>>>);

impl<'c> Resolved<'c> {
    pub fn new(attributes: &'c Attributes, context: &'c Context<'c>) -> Self {
        let seen = OnDemand { attributes, context };
        Self((0..attributes.len()).map(|number| seen.value(number as Attribute)).collect())
    }
}

impl<'c> Seen<'c> for Resolved<'c> {
    fn value(&self, attribute: Attribute) -> Option<&'c Json<'c>> {
        self.0.get(attribute as usize).copied().flatten()
    }
}

/// Why a flag evaluates to what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Off,
    On,
    /// A branch matched; a rollout below 100 had to let the identity in first.
    Matched {
        split: bool,
    },
    /// No branch matched.
    Otherwise,
    OutsideRollout,
    Broken,
}

#[derive(Clone, Copy, Debug)]
pub struct FlagVerdict<'f> {
    pub outcome: &'f FlagResult,
    pub reason: Reason,
}

/// Pure: the same flag, values and identity always give the same verdict.
pub fn evaluate<'f, 'c>(flag: &'f Flag, seen: &impl Seen<'c>, identity: Option<&str>) -> FlagVerdict<'f> {
    let verdict = |outcome, reason| FlagVerdict { outcome, reason };
    match &flag.body {
        FlagBody::Off(outcome) => verdict(outcome, Reason::Off),
        FlagBody::On(outcome) => verdict(outcome, Reason::On),
        FlagBody::Broken(outcome) => verdict(outcome, Reason::Broken),
        FlagBody::Ruled { buckets, branches, otherwise } => {
            // Looking for a match first spares most callers the digest.
            match branches.iter().find(|branch| branch.matches(seen)) {
                None => verdict(otherwise, Reason::Otherwise),
                Some(_) if !is_inside(*buckets, &flag.key, identity) => verdict(otherwise, Reason::OutsideRollout),
                Some(branch) => verdict(&branch.outcome, Reason::Matched { split: *buckets < BUCKETS }),
            }
        }
    }
}

pub(super) fn is_inside(buckets: u32, key: &str, identity: Option<&str>) -> bool {
    match buckets {
        0 => false,
        BUCKETS.. => true,
        buckets => identity.is_some_and(|identity| bucket(key, identity) < buckets),
    }
}

impl CompiledBranch {
    pub(super) fn matches<'c>(&self, seen: &impl Seen<'c>) -> bool {
        self.conditions.iter().all(|condition| condition.matches(seen.value(condition.attribute)))
    }
}

impl CompiledCondition {
    /// A missing attribute does nothing, which is what negative operators ask for.
    pub(super) fn matches(&self, seen: Option<&Json<'_>>) -> bool {
        seen.is_some_and(|seen| self.test.holds(seen)) != self.negative
    }
}
