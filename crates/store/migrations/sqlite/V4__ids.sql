-- Ids come in no order. In a table of their own a large load can add them sorted, at its end.
CREATE TABLE thing_ids (
    scope INTEGER NOT NULL,
    id    BLOB NOT NULL,
    tid   INTEGER NOT NULL,
    PRIMARY KEY (scope, id)
) STRICT, WITHOUT ROWID;
INSERT INTO thing_ids (scope, id, tid) SELECT scope, id, tid FROM things ORDER BY scope, id;
DROP INDEX things_by_id;
CREATE TRIGGER thing_ids_keep BEFORE UPDATE ON thing_ids BEGIN SELECT RAISE(ABORT, 'ids are never changed'); END;
CREATE TRIGGER thing_ids_stay BEFORE DELETE ON thing_ids BEGIN SELECT RAISE(ABORT, 'ids are never deleted'); END;
