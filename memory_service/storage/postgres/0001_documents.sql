-- The memory files of the workspaces. `composed` is the path in the form NFC, by which it is found in any other form.
-- An edition is another one once a content took the place of another; a revision, once anything was changed.
CREATE TABLE documents (
    ws integer NOT NULL REFERENCES workspaces,
    path text COLLATE "C" NOT NULL,
    composed text COLLATE "C" NOT NULL,
    edition bigint NOT NULL,
    revision bigint NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    content bytea NOT NULL,
    PRIMARY KEY (ws, path)
);
CREATE INDEX documents_composed ON documents (ws, composed);
-- What is deleted would stay in samples of the content.
ALTER TABLE documents ALTER content SET STATISTICS 0;
ALTER TABLE documents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY workspace ON documents USING (ws = (SELECT nullif(current_setting('app.ws', true), '')::int));
