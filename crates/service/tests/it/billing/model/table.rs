//! The contract's table of states, with days and names only.

use std::collections::BTreeSet;

pub const DAY: i64 = 24 * 3_600;
pub const WEEK: i64 = 7 * DAY;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    Trial { until: i64 },
    Active,
    PastDue { since: i64 },
    Ending { at: i64, trial: bool, unpaid: Option<i64> },
    Canceled,
}

use Standing::{Active, Canceled, Ending, PastDue, Trial};

#[derive(Clone, Debug)]
pub struct Model {
    pub standing: Option<Standing>,
    pub plan: &'static str,
    pub gate: bool,
    pub scheduled: Option<i64>,
    pub tried: bool,
    /// At the provider: whether it ends with its period, and when that is.
    pub there: Option<(bool, i64)>,
    pub seen: BTreeSet<String>,
}

impl Model {
    pub fn runs(&self) -> bool {
        !matches!(self.standing, None | Some(Canceled))
    }

    pub fn unpaid(&self) -> Option<i64> {
        match self.standing {
            Some(PastDue { since }) => Some(since),
            Some(Ending { unpaid, .. }) => unpaid,
            _ => None,
        }
    }

    /// When the period ends that is running, whether or not the provider has begun it.
    pub fn period_end(&self, now: i64) -> i64 {
        let (_, end) = self.there.expect("it runs at the provider");
        if end > now { end } else { end + ((now - end) / WEEK + 1) * WEEK }
    }

    pub fn become_free(&mut self) {
        (self.standing, self.plan, self.gate, self.scheduled, self.there) = (Some(Active), "free", false, None, None);
    }

    pub fn end(&mut self) {
        (self.standing, self.scheduled, self.there) = (Some(Canceled), None, None);
    }

    /// What is due, each at its own time.
    pub fn pass(&mut self, now: i64) {
        loop {
            let dunning = self.unpaid().map(|since| since + if self.gate { 30 * DAY } else { 14 * DAY });
            let own = match self.standing {
                Some(Trial { until }) => Some(until),
                Some(Ending { at, .. }) => Some(at),
                Some(Active | PastDue { .. }) => self.scheduled,
                _ => return,
            };
            let Some(due) = own.into_iter().chain(dunning).min().filter(|due| *due <= now) else { return };
            match self.standing {
                _ if self.scheduled.is_some_and(|at| at <= due) => self.become_free(),
                Some(Trial { .. }) => {
                    self.end();
                    self.gate = true;
                }
                Some(Ending { at, .. }) if at <= due => self.end(),
                _ if self.gate => self.end(),
                _ => self.gate = true,
            }
        }
    }

    /// The period that the provider has just begun.
    pub fn align(&mut self, end: i64) {
        if let Some(Ending { at, trial: false, .. }) = &mut self.standing {
            *at = end;
        }
        if let Some(at) = &mut self.scheduled {
            *at = end;
        }
    }

    pub fn fail(&mut self, now: i64) {
        match &mut self.standing {
            Some(Active) => self.standing = Some(PastDue { since: now }),
            Some(Ending { unpaid, .. }) if unpaid.is_none() => *unpaid = Some(now),
            _ => {}
        }
    }

    pub fn settle_bill(&mut self) {
        if self.unpaid().is_none() {
            return;
        }
        self.gate = false;
        match &mut self.standing {
            Some(Ending { unpaid, .. }) => *unpaid = None,
            standing => *standing = Some(Active),
        }
    }

    /// Asked for at the provider, or in its portal.
    pub fn cancel(&mut self, at: i64) {
        let unpaid = self.unpaid();
        match self.standing {
            Some(Trial { until }) => self.standing = Some(Ending { at: until, trial: true, unpaid }),
            Some(Active | PastDue { .. }) => self.standing = Some(Ending { at, trial: false, unpaid }),
            _ => {}
        }
        self.scheduled = None;
    }

    pub fn reactivate(&mut self) {
        self.scheduled = None;
        let Some(Ending { at, trial, unpaid }) = self.standing else { return };
        self.standing = Some(match unpaid {
            Some(since) => PastDue { since },
            None if trial => Trial { until: at },
            None => Active,
        });
    }

    pub fn status(&self) -> Option<&'static str> {
        Some(match self.standing? {
            Trial { .. } => "trial",
            Active => "active",
            PastDue { .. } => "past_due",
            Ending { .. } => "cancel_at_period_end",
            Canceled => "canceled",
        })
    }
}
