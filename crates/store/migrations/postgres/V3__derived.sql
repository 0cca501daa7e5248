-- What can be made again from facts: changed and removed at will, no part of the log.

-- Model names are long; vectors carry a number.
CREATE TABLE vector_models (
    tenant  text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    model   text COLLATE "C" NOT NULL,
    number  bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (tenant, project, model)
);

CREATE TABLE vectors (
    tenant   text COLLATE "C" NOT NULL,
    project  text COLLATE "C" NOT NULL,
    model    bigint NOT NULL,
    input    bytea NOT NULL,
    made_at  bigint NOT NULL,
    redacted integer NOT NULL,
    bytes    bytea NOT NULL,
    PRIMARY KEY (tenant, project, model, input)
);

CREATE TABLE jobs (
    tenant       text COLLATE "C" NOT NULL,
    project      text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    key          text COLLATE "C" NOT NULL,
    lane         smallint NOT NULL,
    optional     boolean NOT NULL,
    priority     double precision NOT NULL,
    attempts     integer NOT NULL,
    enqueued_at  bigint NOT NULL,
    not_before   bigint NOT NULL,
    leased_until bigint NOT NULL,
    owner        text COLLATE "C",
    last_error   text COLLATE "C",
    payload      text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, project, kind, key)
);
-- The order in which they are handed out.
CREATE INDEX jobs_in_order ON jobs (tenant, project, kind, lane, optional, priority DESC, attempts, enqueued_at, key);

CREATE TABLE marks (
    tenant  text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    value   bigint NOT NULL,
    PRIMARY KEY (tenant, project, name)
);
