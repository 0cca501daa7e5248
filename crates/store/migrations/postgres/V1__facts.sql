-- The tables of the SQLite store, with tenant and project first in every key, so that they can be sharded.

CREATE TABLE projects (
    tenant      text COLLATE "C" NOT NULL,
    project     text COLLATE "C" NOT NULL,
    namespace   uuid NOT NULL,
    tx          bigint NOT NULL,
    recorded_at bigint NOT NULL,
    hash        bytea NOT NULL,
    next_thing  bigint NOT NULL,
    declared    bigint NOT NULL,
    PRIMARY KEY (tenant, project)
);

CREATE TABLE things (
    tenant        text COLLATE "C" NOT NULL,
    project       text COLLATE "C" NOT NULL,
    thing         bigint NOT NULL,
    id            uuid NOT NULL,
    type          text COLLATE "C" NOT NULL,
    key           text COLLATE "C",
    src           bigint,
    dst           bigint,
    discriminator text COLLATE "C",
    system        boolean NOT NULL,
    PRIMARY KEY (tenant, project, thing)
);
CREATE UNIQUE INDEX things_by_id ON things (tenant, project, id);
CREATE INDEX things_by_key ON things (tenant, project, key) WHERE key IS NOT NULL;
CREATE INDEX things_by_src ON things (tenant, project, src) WHERE src IS NOT NULL;
CREATE INDEX things_by_dst ON things (tenant, project, dst) WHERE dst IS NOT NULL;
CREATE INDEX things_system ON things (tenant, project, thing) WHERE system;

CREATE TABLE statements (
    tenant      text COLLATE "C" NOT NULL,
    project     text COLLATE "C" NOT NULL,
    thing       bigint NOT NULL,
    branch      integer NOT NULL,
    version     bigint NOT NULL,
    recorded_at bigint NOT NULL,
    valid_from  bigint NOT NULL,
    valid_to    bigint NOT NULL,
    number      integer NOT NULL,
    parents     bytea,
    hash        bytea NOT NULL,
    content     text COLLATE "C",
    change      text COLLATE "C",
    PRIMARY KEY (tenant, project, thing, branch, version)
);
CREATE UNIQUE INDEX statements_by_version ON statements (tenant, project, version) INCLUDE (branch, thing);

CREATE TABLE provenance (
    tenant  text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    thing   bigint NOT NULL,
    child   bigint NOT NULL,
    parent  bigint NOT NULL,
    role    smallint NOT NULL,
    tx      bigint NOT NULL,
    PRIMARY KEY (tenant, project, thing, child, parent, role)
);
CREATE INDEX provenance_by_tx ON provenance (tenant, project, tx);

CREATE TABLE transactions (
    tenant        text COLLATE "C" NOT NULL,
    project       text COLLATE "C" NOT NULL,
    tx            bigint NOT NULL,
    recorded_at   bigint NOT NULL,
    branch        integer NOT NULL,
    objects       integer NOT NULL,
    relationships integer NOT NULL,
    agent         text COLLATE "C",
    git_commit    text COLLATE "C",
    header        text COLLATE "C" NOT NULL,
    hash          bytea NOT NULL,
    PRIMARY KEY (tenant, project, tx)
);
CREATE INDEX transactions_by_commit ON transactions (tenant, project, git_commit) WHERE git_commit IS NOT NULL;
CREATE INDEX transactions_by_agent ON transactions (tenant, project, agent, tx) WHERE agent IS NOT NULL;
CREATE INDEX transactions_by_time ON transactions (tenant, project, recorded_at, tx);

CREATE TABLE client_batches (
    tenant    text COLLATE "C" NOT NULL,
    project   text COLLATE "C" NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    digest    bytea NOT NULL,
    tx        bigint,
    unchanged bigint NOT NULL,
    PRIMARY KEY (tenant, project, client_id)
);

-- The application may not own tables, and so may not analyse them. After a bulk load the planner must not wait
-- for autovacuum to learn that one project holds most rows: without that it may read a whole project by one id.
CREATE FUNCTION refresh_statistics() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = lukasa, pg_temp AS $$
BEGIN
    ANALYZE lukasa.things;
    ANALYZE lukasa.statements;
    ANALYZE lukasa.provenance;
    ANALYZE lukasa.transactions;
END
$$;
REVOKE ALL ON FUNCTION refresh_statistics() FROM PUBLIC;
