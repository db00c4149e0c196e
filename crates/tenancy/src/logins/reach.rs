//! How far a login reaches. An identity provider of one workspace can assert any address, so what it says opens the workspaces that
//! use it and nothing else: whatever descends from a login carries its reach, and whoever lists a person's workspaces has to say which.

use kernel::Timestamp;
use serde::{Deserialize, Serialize};

use super::ConnectionId;

/// Which of a person's workspaces a login opens, and until when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// The connection that the person came through: its workspaces alone. `None` is every workspace.
    pub connection: Option<ConnectionId>,
    /// When the identity provider's own session ends.
    pub ends_at: Option<Timestamp>,
}

impl Reach {
    /// Of a login by means of the person's own: a password, a link, a passkey.
    pub const EVERYTHING: Self = Self { connection: None, ends_at: None };

    pub fn is_everything(&self) -> bool {
        self.connection.is_none()
    }

    pub fn lasts(&self, now: Timestamp) -> bool {
        self.ends_at.is_none_or(|end| end > now)
    }

    /// The earlier of an instant and the end.
    pub fn bounds(&self, at: Timestamp) -> Timestamp {
        self.ends_at.map_or(at, |end| end.min(at))
    }
}
