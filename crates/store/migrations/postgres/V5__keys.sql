-- Keys that let programs in. The secret itself is kept nowhere. Found by id before a tenant is known, so the id leads:
-- the policy shows a row to its tenant, and to a transaction that names its id; it lets nobody else write it.
CREATE TABLE access_keys (
    id         text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id <> ''),
    secret     bytea NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    project    text COLLATE "C",
    username   text COLLATE "C" NOT NULL,
    scopes     text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    last_used  bigint
);
CREATE INDEX access_keys_of_tenant ON access_keys (tenant, created_at, id);
