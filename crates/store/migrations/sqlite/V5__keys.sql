-- Keys that let programs in. The secret itself is kept nowhere.
CREATE TABLE access_keys (
    id         TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    secret     BLOB NOT NULL,
    tenant     TEXT NOT NULL,
    project    TEXT,
    user       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX access_keys_of_tenant ON access_keys (tenant, created_at, id);
CREATE TRIGGER access_keys_keep BEFORE UPDATE OF id, secret, tenant, project, user, scopes, created_at, expires_at ON access_keys
    BEGIN SELECT RAISE(ABORT, 'keys are never changed'); END;
CREATE TRIGGER access_keys_stay BEFORE UPDATE OF revoked_at ON access_keys
    WHEN OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS NOT OLD.revoked_at
    BEGIN SELECT RAISE(ABORT, 'a revoked key stays revoked'); END;
