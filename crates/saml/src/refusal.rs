//! Why a response was refused: the step that refused it and what was wrong, never the message's content.

use std::fmt;

/// The steps of judging, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    Encoding,
    WellFormed,
    Shape,
    Algorithms,
    Signature,
    Decryption,
    Issuer,
    Status,
    Destination,
    Recipient,
    Audience,
    InResponseTo,
    Times,
    Attributes,
}

impl Step {
    pub const ALL: [Self; 14] = [
        Self::Encoding,
        Self::WellFormed,
        Self::Shape,
        Self::Algorithms,
        Self::Signature,
        Self::Decryption,
        Self::Issuer,
        Self::Status,
        Self::Destination,
        Self::Recipient,
        Self::Audience,
        Self::InResponseTo,
        Self::Times,
        Self::Attributes,
    ];

    /// As the audit trail has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encoding => "encoding",
            Self::WellFormed => "well_formed",
            Self::Shape => "shape",
            Self::Algorithms => "algorithms",
            Self::Signature => "signature",
            Self::Decryption => "decryption",
            Self::Issuer => "issuer",
            Self::Status => "status",
            Self::Destination => "destination",
            Self::Recipient => "recipient",
            Self::Audience => "audience",
            Self::InResponseTo => "in_response_to",
            Self::Times => "times",
            Self::Attributes => "attributes",
        }
    }
}

/// The first thing that was wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub step: Step,
    /// For the audit trail: a sentence of ours, so that nothing of the message gets there.
    pub reason: &'static str,
}

impl Refusal {
    pub(crate) fn new(step: Step, reason: &'static str) -> Self {
        Self { step, reason }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step.name(), self.reason)
    }
}

impl std::error::Error for Refusal {}

/// Refuses with this step and reason unless the condition holds.
pub(crate) fn require(holds: bool, step: Step, reason: &'static str) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(Refusal::new(step, reason)) }
}
