-- Small records of workspaces, and under the number 0 those of the home. Keys and sessions are the bytes of their text.
-- A version is drawn by chance: no counter is shared, and none comes back after a failover.
CREATE TABLE records (
    ws integer NOT NULL,
    kind text NOT NULL,
    key bytea NOT NULL,
    version uuid NOT NULL DEFAULT gen_random_uuid(),
    session bytea NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires timestamptz NOT NULL,
    raw bytea NOT NULL,
    PRIMARY KEY (ws, kind, key)
);
CREATE INDEX records_of_sessions ON records (ws, session) WHERE session <> '';
-- What is deleted would stay in samples of the content.
ALTER TABLE records ALTER raw SET STATISTICS 0;
ALTER TABLE records ENABLE ROW LEVEL SECURITY;
ALTER TABLE records FORCE ROW LEVEL SECURITY;
CREATE POLICY workspace ON records USING (ws = (SELECT nullif(current_setting('app.ws', true), '')::int));
