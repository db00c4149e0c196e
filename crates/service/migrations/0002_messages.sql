-- Mail and SMS that wait to be sent. What was written is sealed, and erased once it is sent or given up.
CREATE TABLE mail_outbox (
    id {key} PRIMARY KEY,
    app_id {key},
    recipient TEXT NOT NULL,
    sealed TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts {int} NOT NULL DEFAULT 0,
    next_attempt_at {int} NOT NULL,
    lease_owner TEXT,
    lease_until {int},
    last_error TEXT,
    created_at {int} NOT NULL,
    finished_at {int}
) {strict};
CREATE INDEX mail_outbox_waiting ON mail_outbox (next_attempt_at) WHERE state = 'waiting';
CREATE INDEX mail_outbox_finished ON mail_outbox (finished_at) WHERE state <> 'waiting';

CREATE TABLE sms_outbox (
    id {key} PRIMARY KEY,
    app_id {key},
    recipient TEXT NOT NULL,
    sealed TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts {int} NOT NULL DEFAULT 0,
    next_attempt_at {int} NOT NULL,
    lease_owner TEXT,
    lease_until {int},
    last_error TEXT,
    created_at {int} NOT NULL,
    finished_at {int}
) {strict};
CREATE INDEX sms_outbox_waiting ON sms_outbox (next_attempt_at) WHERE state = 'waiting';
CREATE INDEX sms_outbox_finished ON sms_outbox (finished_at) WHERE state <> 'waiting';
