-- The next rows of an import are found in their order, however many are left.
CREATE INDEX import_rows_in_order ON import_rows (app_id, import_id, id);
DROP INDEX import_rows_by_app;
