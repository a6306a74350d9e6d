-- The index of a workspace, a generation of it under a number: those of `index_heads` that are not live are made, or
-- were in use. Texts are bytes, so that each comes back as it was; keys, files and labels are numbered by the head,
-- which whoever writes has locked, so that they grow in the order of commits.
CREATE TABLE index_heads (
    ws integer NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    gen integer NOT NULL,
    live boolean NOT NULL,
    name text NOT NULL,
    fingerprint text NOT NULL,
    fact_rules text NOT NULL,
    revision bigint NOT NULL,
    last_key bigint NOT NULL,
    last_file bigint NOT NULL,
    last_label integer NOT NULL,
    updated_at timestamptz,
    PRIMARY KEY (ws, gen)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX index_heads_live ON index_heads (ws) WHERE live;

CREATE TABLE index_files (
    file bigint NOT NULL,
    revision bigint NOT NULL,
    size_bytes bigint NOT NULL,
    checked_ns bigint NOT NULL,
    ws integer NOT NULL,
    gen integer NOT NULL,
    source text NOT NULL,
    path bytea NOT NULL,
    version bytea NOT NULL,
    known_version bytea NOT NULL,
    content_hash text NOT NULL,
    failure text NOT NULL,
    PRIMARY KEY (ws, gen, file),
    UNIQUE (ws, gen, path),
    FOREIGN KEY (ws, gen) REFERENCES index_heads ON DELETE CASCADE
);
CREATE INDEX index_files_revision ON index_files (ws, gen, revision);

CREATE TABLE index_gone (
    ws integer NOT NULL,
    gen integer NOT NULL,
    revision bigint NOT NULL,
    file bigint NOT NULL,
    PRIMARY KEY (ws, gen, revision, file),
    FOREIGN KEY (ws, gen) REFERENCES index_heads ON DELETE CASCADE
);

CREATE TABLE index_labels (
    ws integer NOT NULL,
    gen integer NOT NULL,
    label integer NOT NULL,
    name bytea NOT NULL,
    PRIMARY KEY (ws, gen, label),
    UNIQUE (ws, gen, name),
    FOREIGN KEY (ws, gen) REFERENCES index_heads ON DELETE CASCADE
);

-- `terms` are the terms that a passage was stored with, one after another: what is in the index of words is what stands
-- there.
CREATE TABLE index_passages (
    key bigint NOT NULL,
    file bigint NOT NULL,
    written bigint NOT NULL,
    start_line bigint NOT NULL,
    end_line bigint NOT NULL,
    ws integer NOT NULL,
    gen integer NOT NULL,
    ordinal integer NOT NULL,
    day integer NOT NULL,
    label integer NOT NULL,
    marks integer NOT NULL,
    greeted integer NOT NULL,
    chars integer NOT NULL,
    length integer NOT NULL,
    opens_section boolean NOT NULL,
    text_hash bytea NOT NULL,
    heading bytea NOT NULL,
    tags bytea NOT NULL,
    text bytea NOT NULL,
    terms bytea NOT NULL,
    PRIMARY KEY (ws, gen, key),
    FOREIGN KEY (ws, gen) REFERENCES index_heads ON DELETE CASCADE
);
CREATE INDEX index_passages_file ON index_passages (ws, gen, file, ordinal);
CREATE INDEX index_passages_text ON index_passages (ws, gen, text_hash);
CREATE INDEX index_passages_label ON index_passages (ws, gen, label) WHERE label > 0;
CREATE INDEX index_passages_greeted ON index_passages (ws, gen, greeted) WHERE greeted > 0;

-- Passages that have no vector yet: a few, for a while.
CREATE TABLE index_unembedded (
    ws integer NOT NULL,
    gen integer NOT NULL,
    key bigint NOT NULL,
    file bigint NOT NULL,
    PRIMARY KEY (ws, gen, key),
    FOREIGN KEY (ws, gen) REFERENCES index_heads ON DELETE CASCADE
);

-- Float32, little-endian, in the row itself: one that is looked up costs one page.
CREATE TABLE index_vectors (
    key bigint NOT NULL,
    ws integer NOT NULL,
    gen integer NOT NULL,
    vector bytea STORAGE PLAIN NOT NULL,
    PRIMARY KEY (ws, gen, key),
    FOREIGN KEY (ws, gen) REFERENCES index_heads ON DELETE CASCADE
);

-- Things that passages state, with what orders those of one thing, so that the best of many are found without reading
-- the others.
CREATE TABLE index_facts (
    thing bigint NOT NULL,
    key bigint NOT NULL,
    written bigint NOT NULL,
    ws integer NOT NULL,
    gen integer NOT NULL,
    ordinal integer NOT NULL,
    role smallint NOT NULL,
    PRIMARY KEY (ws, gen, thing, key) INCLUDE (written, ordinal, role),
    FOREIGN KEY (ws, gen) REFERENCES index_heads ON DELETE CASCADE
);
CREATE INDEX index_facts_key ON index_facts (ws, gen, key);

-- Tags, and those above them, by number: a filter asks for keys alone.
CREATE TABLE index_tags (
    tag bigint NOT NULL,
    key bigint NOT NULL,
    ws integer NOT NULL,
    gen integer NOT NULL,
    PRIMARY KEY (ws, gen, tag, key),
    FOREIGN KEY (ws, gen) REFERENCES index_heads ON DELETE CASCADE
);
CREATE INDEX index_tags_key ON index_tags (ws, gen, key);

-- The packed part that one machine has published, for the others, in parts of a megabyte. It is of the index by name:
-- where it is, all that it was made of is, whatever else was taken back. `generation` tells two of one revision apart.
CREATE TABLE index_packs (
    ws integer NOT NULL,
    gen integer NOT NULL,
    part integer NOT NULL,
    revision bigint NOT NULL,
    name text NOT NULL,
    generation text NOT NULL,
    content bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (ws, gen, part),
    FOREIGN KEY (ws, gen) REFERENCES index_heads ON DELETE CASCADE
);

-- What is deleted would stay in samples of the content.
ALTER TABLE index_passages
    ALTER heading SET STATISTICS 0, ALTER text SET STATISTICS 0, ALTER terms SET STATISTICS 0;
ALTER TABLE index_vectors ALTER vector SET STATISTICS 0;
ALTER TABLE index_packs ALTER content SET STATISTICS 0;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'index_heads', 'index_files', 'index_gone', 'index_labels', 'index_passages', 'index_unembedded',
        'index_vectors', 'index_facts', 'index_tags', 'index_packs'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY workspace ON %I USING (ws = (SELECT nullif(current_setting(''app.ws'', true), '''')::int))',
            name
        );
    END LOOP;
END $$;
