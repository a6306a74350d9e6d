-- Workspaces have numbers here: short keys for all other tables, each of which begins its keys with one. A name with a
-- dot before it is that of a temporary workspace.
CREATE TABLE workspaces (
    ws integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '^[.]?[a-z0-9][a-z0-9._-]{0,63}$'),
    -- Unset while only something was noted of one that is not there yet.
    made_at timestamptz
);
