//! The tables of this room.

use store::{Table, table};

pub const TABLES: &[Table] = &[
    table!("outbox"("id"); kept "trimmed once every consumer has passed"),
    table!("outbox_head"("id")),
    table!("outbox_cursors"("name")),
    table!("outbox_parked"("consumer, position") of app, workspace; stays "by the positions of this outbox"),
    table!("leases"("name")),
    table!("test_clock"("id")),
    table!("mail_outbox"("id") of app; sealed "sealed" by "id"; stays "whoever queued a mail sends it, once"),
    table!("sms_outbox"("id") of app; sealed "sealed" by "id"; stays "whoever queued a text sends it, once"),
    table!("purges"("app_id, belongs_by, owner_id"); kept "says what is being deleted, and goes when that is done"),
];
