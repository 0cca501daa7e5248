-- The record of operations: one chain of hashes per tenant and server. The application may add rows and change none.
CREATE TABLE audit (
    tenant     text COLLATE "C" NOT NULL,
    server     text COLLATE "C" NOT NULL,
    number     bigint NOT NULL CHECK (number > 0),
    at         bigint NOT NULL,
    project    text COLLATE "C" NOT NULL,
    username   text COLLATE "C",
    agent      text COLLATE "C",
    operation  text COLLATE "C" NOT NULL,
    scopes     text COLLATE "C" NOT NULL,
    request    text COLLATE "C" NOT NULL,
    status     text COLLATE "C" NOT NULL,
    counts     text COLLATE "C" NOT NULL,
    truncated  boolean NOT NULL,
    took_us    bigint NOT NULL,
    request_id text COLLATE "C",
    previous   bytea NOT NULL,
    hash       bytea NOT NULL,
    PRIMARY KEY (tenant, server, number)
);
CREATE INDEX audit_by_time ON audit (tenant, at);
-- How far each chain has come, sealed with a key that is not here.
CREATE TABLE audit_heads (
    tenant   text COLLATE "C" NOT NULL,
    server   text COLLATE "C" NOT NULL,
    number   bigint NOT NULL,
    hash     bytea NOT NULL,
    seal     bytea NOT NULL,
    seal_key text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, server)
);
