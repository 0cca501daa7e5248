-- What can be made again from facts: changed and removed at will, no part of the log.

-- Model names are long; vectors carry a number.
CREATE TABLE vector_models (
    number INTEGER PRIMARY KEY,
    scope  INTEGER NOT NULL REFERENCES projects,
    model  TEXT NOT NULL,
    UNIQUE (scope, model)
) STRICT;

-- In order of arrival, so that all of a model are read in one go; found by the hash of their input.
CREATE TABLE vectors (
    id       INTEGER PRIMARY KEY,
    model    INTEGER NOT NULL REFERENCES vector_models,
    input    BLOB NOT NULL,
    made_at  INTEGER NOT NULL,
    redacted INTEGER NOT NULL,
    bytes    BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX vectors_by_input ON vectors (model, input);

CREATE TABLE jobs (
    scope        INTEGER NOT NULL REFERENCES projects,
    kind         TEXT NOT NULL,
    key          TEXT NOT NULL,
    lane         INTEGER NOT NULL,
    optional     INTEGER NOT NULL,
    priority     REAL NOT NULL,
    attempts     INTEGER NOT NULL,
    enqueued_at  INTEGER NOT NULL,
    not_before   INTEGER NOT NULL,
    leased_until INTEGER NOT NULL,
    owner        TEXT,
    last_error   TEXT,
    payload      TEXT NOT NULL,
    PRIMARY KEY (scope, kind, key)
) STRICT, WITHOUT ROWID;
-- The order in which they are handed out.
CREATE INDEX jobs_in_order ON jobs (scope, kind, lane, optional, priority DESC, attempts, enqueued_at, key);

CREATE TABLE marks (
    scope INTEGER NOT NULL REFERENCES projects,
    name  TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;
