-- What a load makes: things with numbers in a row, with what is first said of each, as one row. A row for each would be
-- six entries in six trees; here a few dozen things share one. What is said later of them are rows of `statements`.
-- `first` is the `tid` of the first, `last` the highest version.
CREATE TABLE runs (
    first       INTEGER PRIMARY KEY,
    scope       INTEGER NOT NULL,
    things      INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    body        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX runs_by_version ON runs (scope, last);

-- Where things of runs are found: by id, all of one load whose ids begin with the same two bytes in one row,
CREATE TABLE run_ids (
    scope  INTEGER NOT NULL,
    prefix INTEGER NOT NULL,
    first  INTEGER NOT NULL,
    list   BLOB NOT NULL,
    PRIMARY KEY (scope, prefix, first)
) STRICT, WITHOUT ROWID;

-- by key,
CREATE TABLE run_keys (
    scope INTEGER NOT NULL,
    key   TEXT NOT NULL,
    tid   INTEGER NOT NULL,
    type  TEXT NOT NULL,
    PRIMARY KEY (scope, key, tid)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_files ON run_keys (scope, key) WHERE type = 'FILE';

-- and by an end: all relationships of one load that begin (`side` 0) or end (1) at a thing. `first` is one of them.
CREATE TABLE run_ends (
    node  INTEGER NOT NULL,
    side  INTEGER NOT NULL,
    first INTEGER NOT NULL,
    list  BLOB NOT NULL,
    PRIMARY KEY (node, side, first)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER runs_keep BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'things are never changed'); END;
CREATE TRIGGER runs_stay BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'things are never deleted'); END;
CREATE TRIGGER run_ids_keep BEFORE UPDATE ON run_ids BEGIN SELECT RAISE(ABORT, 'ids are never changed'); END;
CREATE TRIGGER run_ids_stay BEFORE DELETE ON run_ids BEGIN SELECT RAISE(ABORT, 'ids are never deleted'); END;
CREATE TRIGGER run_keys_keep BEFORE UPDATE ON run_keys BEGIN SELECT RAISE(ABORT, 'keys are never changed'); END;
CREATE TRIGGER run_keys_stay BEFORE DELETE ON run_keys BEGIN SELECT RAISE(ABORT, 'keys are never deleted'); END;
CREATE TRIGGER run_ends_keep BEFORE UPDATE ON run_ends BEGIN SELECT RAISE(ABORT, 'ends are never changed'); END;
CREATE TRIGGER run_ends_stay BEFORE DELETE ON run_ends BEGIN SELECT RAISE(ABORT, 'ends are never deleted'); END;

-- Ids of things that are rows. A Lukasa that knows of no runs, and has the store open, finds the table no more: it would
-- make anew what runs already hold.
ALTER TABLE thing_ids RENAME TO row_ids;
