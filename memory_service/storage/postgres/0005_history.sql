-- Contents that others took the place of; `version` is the revision that the document had.
CREATE TABLE document_versions (
    ws integer NOT NULL REFERENCES workspaces,
    path text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    replaced_at timestamptz NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (ws, path, version)
);
CREATE INDEX document_versions_by_age ON document_versions (ws, replaced_at);
ALTER TABLE document_versions ALTER content SET STATISTICS 0;
ALTER TABLE document_versions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY workspace ON document_versions USING (ws = (SELECT nullif(current_setting('app.ws', true), '')::int));
-- How many records were appended at once, at the first of them.
ALTER TABLE log_records ADD COLUMN batch integer NOT NULL DEFAULT 0;
