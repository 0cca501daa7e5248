-- The record of operations, in a file of its own: it waits for no writer of facts, and restoring facts does not undo it.
CREATE TABLE audit (
    tenant     TEXT NOT NULL,
    server     TEXT NOT NULL,
    number     INTEGER NOT NULL CHECK (number > 0),
    at         INTEGER NOT NULL,
    project    TEXT NOT NULL,
    user       TEXT,
    agent      TEXT,
    operation  TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    request    TEXT NOT NULL,
    status     TEXT NOT NULL,
    counts     TEXT NOT NULL,
    truncated  INTEGER NOT NULL,
    took_us    INTEGER NOT NULL,
    request_id TEXT,
    previous   BLOB NOT NULL,
    hash       BLOB NOT NULL,
    PRIMARY KEY (tenant, server, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by_time ON audit (tenant, at);
CREATE TRIGGER audit_keep BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the record is never changed'); END;
CREATE TRIGGER audit_stay BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the record is never changed'); END;
-- How far each chain has come, sealed with a key that is not here.
CREATE TABLE audit_heads (
    tenant   TEXT NOT NULL,
    server   TEXT NOT NULL,
    number   INTEGER NOT NULL,
    hash     BLOB NOT NULL,
    seal     BLOB NOT NULL,
    seal_key TEXT NOT NULL,
    PRIMARY KEY (tenant, server)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER audit_heads_grow BEFORE UPDATE ON audit_heads WHEN NEW.number <= OLD.number
    BEGIN SELECT RAISE(ABORT, 'a chain only grows'); END;
CREATE TRIGGER audit_heads_stay BEFORE DELETE ON audit_heads
    BEGIN SELECT RAISE(ABORT, 'the record is never changed'); END;
