-- Of the home itself: messages of channels, with the number of the last of each; leases; secrets.
CREATE TABLE channels (
    channel text PRIMARY KEY,
    last_number bigint NOT NULL,
    -- Of the database, as it gave the last number.
    incarnation text NOT NULL
);
CREATE TABLE channel_messages (
    channel text NOT NULL,
    number bigint NOT NULL,
    published_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    raw bytea NOT NULL,
    PRIMARY KEY (channel, number)
);
-- The lock of a lease tells whether its holder is there; the row, that one did not give it back.
CREATE TABLE leases (
    name text PRIMARY KEY,
    lock_key bigint NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lost_at timestamptz
);
CREATE TABLE secrets (
    name text PRIMARY KEY,
    value bytea NOT NULL
);
-- What is deleted would stay in samples of the content.
ALTER TABLE channel_messages ALTER raw SET STATISTICS 0;
