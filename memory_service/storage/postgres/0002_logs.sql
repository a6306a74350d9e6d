-- The logs of sessions. An edition is another one once anything but an append was done; a revision, after every change;
-- `begun` tells a log from a later one of the same name. `trims` are those that can be taken back, the last at the end.
CREATE TABLE sessions (
    ws integer NOT NULL REFERENCES workspaces,
    session text COLLATE "C" NOT NULL,
    begun bigint NOT NULL,
    edition bigint NOT NULL,
    revision bigint NOT NULL,
    last_seq bigint NOT NULL,
    size_bytes bigint NOT NULL,
    trims bigint[] NOT NULL DEFAULT '{}',
    active_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (ws, session)
) WITH (fillfactor = 50);
-- A line without its beginning, which is made of the other columns; `retired_by` is the number of a trim.
CREATE TABLE log_records (
    ws integer NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    ts text NOT NULL,
    kind text NOT NULL,
    rest bytea NOT NULL,
    retired_by bigint,
    PRIMARY KEY (ws, session, seq)
);
CREATE TABLE blobs (
    ws integer NOT NULL,
    sha256 bytea NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (ws, sha256)
);
CREATE TABLE blob_refs (
    ws integer NOT NULL,
    sha256 bytea NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (ws, sha256, session, seq)
);
CREATE INDEX blob_refs_of_sessions ON blob_refs (ws, session, seq);
-- What is deleted would stay in samples of the content.
ALTER TABLE log_records ALTER rest SET STATISTICS 0;
ALTER TABLE blobs ALTER content SET STATISTICS 0;
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE log_records ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE blobs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE blob_refs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY workspace ON sessions USING (ws = (SELECT nullif(current_setting('app.ws', true), '')::int));
CREATE POLICY workspace ON log_records USING (ws = (SELECT nullif(current_setting('app.ws', true), '')::int));
CREATE POLICY workspace ON blobs USING (ws = (SELECT nullif(current_setting('app.ws', true), '')::int));
CREATE POLICY workspace ON blob_refs USING (ws = (SELECT nullif(current_setting('app.ws', true), '')::int));
