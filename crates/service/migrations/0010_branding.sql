-- What an app changed about its looks: mails, hosted pages, words.
CREATE TABLE mail_templates (
    app_id {key} NOT NULL,
    name {key} NOT NULL,
    content TEXT NOT NULL,
    updated_at {int} NOT NULL,
    PRIMARY KEY (app_id, name)
) {strict};

CREATE TABLE brand_styles (
    app_id {key} PRIMARY KEY,
    content TEXT NOT NULL,
    updated_at {int} NOT NULL
) {strict};

CREATE TABLE brand_translations (
    app_id {key} PRIMARY KEY,
    -- A JSON object of source text to translated text.
    content TEXT NOT NULL,
    updated_at {int} NOT NULL
) {strict};

-- Credentials of third parties, write-only and sealed.
CREATE TABLE app_credentials (
    app_id {key} NOT NULL,
    name {key} NOT NULL,
    sealed TEXT NOT NULL,
    updated_at {int} NOT NULL,
    PRIMARY KEY (app_id, name)
) {strict};
