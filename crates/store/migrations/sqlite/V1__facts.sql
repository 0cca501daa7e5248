-- One row per project; `scope` stands for (tenant, project) everywhere else.
CREATE TABLE projects (
    scope       INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    project     TEXT NOT NULL,
    namespace   BLOB NOT NULL,
    tx          INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    hash        BLOB NOT NULL,
    next_thing  INTEGER NOT NULL,
    declared    INTEGER NOT NULL,
    UNIQUE (tenant, project)
) STRICT;

-- What never changes about an object or relationship. `tid` is the scope and the thing's number.
CREATE TABLE things (
    tid           INTEGER PRIMARY KEY,
    scope         INTEGER NOT NULL REFERENCES projects,
    id            BLOB NOT NULL,
    type          TEXT NOT NULL,
    key           TEXT,
    src           INTEGER,
    dst           INTEGER,
    discriminator TEXT,
    system        INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX things_by_id ON things (scope, id);
CREATE INDEX things_by_key ON things (scope, key) WHERE key IS NOT NULL;
CREATE INDEX things_by_src ON things (src) WHERE src IS NOT NULL;
CREATE INDEX things_by_dst ON things (dst) WHERE dst IS NOT NULL;
CREATE INDEX things_system ON things (scope) WHERE system = 1;

-- Clustered by thing: all that was ever said about one thing lies together.
CREATE TABLE statements (
    tid         INTEGER NOT NULL,
    branch      INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    scope       INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    valid_from  INTEGER NOT NULL,
    valid_to    INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    parents     BLOB,
    hash        BLOB NOT NULL,
    content     TEXT,
    change      TEXT,
    PRIMARY KEY (tid, branch, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX statements_by_version ON statements (scope, version);

CREATE TABLE provenance (
    tid    INTEGER NOT NULL,
    child  INTEGER NOT NULL,
    parent INTEGER NOT NULL,
    role   INTEGER NOT NULL,
    scope  INTEGER NOT NULL,
    tx     INTEGER NOT NULL,
    PRIMARY KEY (tid, child, parent, role)
) STRICT, WITHOUT ROWID;
CREATE INDEX provenance_by_tx ON provenance (scope, tx);

CREATE TABLE transactions (
    scope         INTEGER NOT NULL,
    tx            INTEGER NOT NULL,
    recorded_at   INTEGER NOT NULL,
    branch        INTEGER NOT NULL,
    objects       INTEGER NOT NULL,
    relationships INTEGER NOT NULL,
    agent         TEXT,
    git_commit    TEXT,
    header        TEXT NOT NULL,
    hash          BLOB NOT NULL,
    PRIMARY KEY (scope, tx)
) STRICT, WITHOUT ROWID;
CREATE INDEX transactions_by_commit ON transactions (scope, git_commit) WHERE git_commit IS NOT NULL;
CREATE INDEX transactions_by_agent ON transactions (scope, agent, tx) WHERE agent IS NOT NULL;
CREATE INDEX transactions_by_time ON transactions (scope, recorded_at, tx);

CREATE TABLE client_batches (
    scope     INTEGER NOT NULL,
    client_id TEXT NOT NULL,
    digest    BLOB NOT NULL,
    tx        INTEGER,
    unchanged INTEGER NOT NULL,
    PRIMARY KEY (scope, client_id)
) STRICT, WITHOUT ROWID;

-- Nothing is ever overwritten or removed, not even by a mistake in Lukasa.
CREATE TRIGGER things_keep BEFORE UPDATE ON things BEGIN SELECT RAISE(ABORT, 'things are never changed'); END;
CREATE TRIGGER things_stay BEFORE DELETE ON things BEGIN SELECT RAISE(ABORT, 'things are never deleted'); END;
CREATE TRIGGER statements_keep BEFORE UPDATE ON statements BEGIN SELECT RAISE(ABORT, 'statements are never changed'); END;
CREATE TRIGGER statements_stay BEFORE DELETE ON statements BEGIN SELECT RAISE(ABORT, 'statements are never deleted'); END;
CREATE TRIGGER transactions_keep BEFORE UPDATE ON transactions BEGIN SELECT RAISE(ABORT, 'the log is never changed'); END;
CREATE TRIGGER transactions_stay BEFORE DELETE ON transactions BEGIN SELECT RAISE(ABORT, 'the log is never deleted'); END;
