-- Workspaces have numbers here: short keys for all other tables, each of which begins its keys with one. They are drawn by
-- chance, so that none that a standby has not heard of is given to another workspace. A name with a dot before it is that
-- of a temporary workspace.
CREATE TABLE workspaces (
    ws integer PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '^[.]?[a-z0-9][a-z0-9._-]{0,63}$'),
    -- Unset while only something was noted of one that is not there yet.
    made_at timestamptz
);
