-- Version 1. The columns are described in package journal/internal/log. JSON is stored as text, because its checksum covers
-- the exact bytes. Times are in Unix milliseconds; 0 means no time.

-- The cost and failure of a run are computed from its outcome, so that lists can be searched by index. A damaged row has cost 0
-- and no failure.
CREATE FUNCTION stone.cost_of(outcome text) RETURNS double precision LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	RETURN coalesce((outcome::json -> 'usage' ->> 'usd')::double precision, 0);
EXCEPTION WHEN data_exception THEN
	RETURN 0;
END $$;

CREATE FUNCTION stone.failure_of(outcome text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE f json;
BEGIN
	f := outcome::json -> 'failure';
	RETURN lower((f ->> 'kind') || ' ' || coalesce(f ->> 'path', '') || ' ' || coalesce(f ->> 'reason', ''));
EXCEPTION WHEN data_exception THEN
	RETURN NULL;
END $$;

CREATE TABLE stone.runs (
	run      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id       text COLLATE "C" NOT NULL UNIQUE,
	owner    text COLLATE "C" NOT NULL,
	beat     bigint NOT NULL,
	lease    bigint NOT NULL,
	outside  text COLLATE "C" NOT NULL,
	rows     bigint NOT NULL DEFAULT 0,
	state    text COLLATE "C" NOT NULL DEFAULT '',
	tail     bigint NOT NULL DEFAULT 0,
	tip      bigint NOT NULL DEFAULT 0,
	seal     bytea,
	info     text,
	outcome  text,
	shape    text,
	pipeline text COLLATE "C" NOT NULL DEFAULT '',
	started  bigint NOT NULL DEFAULT 0,
	ended    bigint NOT NULL DEFAULT 0,
	cost     double precision NOT NULL GENERATED ALWAYS AS (stone.cost_of(outcome)) STORED,
	failure  text COLLATE "C" GENERATED ALWAYS AS (stone.failure_of(outcome)) STORED
) WITH (fillfactor = 50); -- a new beat changes no index, so the row can stay on its page

CREATE INDEX states ON stone.runs (state, run);
CREATE INDEX pipelines ON stone.runs (pipeline, run);
CREATE INDEX piped ON stone.runs (pipeline, state, run) WHERE state NOT IN ('', 'running');
CREATE INDEX starts ON stone.runs (started, run);
CREATE INDEX ends ON stone.runs (ended, run, state) WHERE ended <> 0;
CREATE INDEX costs ON stone.runs (cost, run) WHERE cost <> 0;
CREATE INDEX failures ON stone.runs (run) WHERE failure IS NOT NULL;

CREATE TABLE stone.labels (
	name  text COLLATE "C" NOT NULL,
	value text COLLATE "C" NOT NULL,
	run   bigint NOT NULL,
	PRIMARY KEY (name, value, run)
);

CREATE INDEX labelled ON stone.labels (run);

-- Only the holder of a run adds records, while it has locked the run's row in runs. The primary key also prevents a commit from
-- being written twice.
CREATE TABLE stone.records (
	run     bigint NOT NULL,
	seq     bigint NOT NULL,
	digest  bytea,
	reuse   bytea,
	node    bytea,
	parents bytea,
	path    text COLLATE "C",
	head    text NOT NULL,
	seal    bytea NOT NULL,
	content bytea,
	PRIMARY KEY (run, seq)
);

CREATE INDEX reusable ON stone.records (reuse, run, seq) WHERE reuse IS NOT NULL;
CREATE INDEX paths ON stone.records (run, path, seq) WHERE path IS NOT NULL;
CREATE INDEX nodes ON stone.records (run, node) WHERE node IS NOT NULL;

-- The outlines of large runs, as package journal/internal/outline encodes them.
CREATE TABLE stone.blocks (
	run    bigint NOT NULL,
	parent text COLLATE "C" NOT NULL,
	slot   text COLLATE "C" NOT NULL,
	counts bytea,
	seal   bytea NOT NULL,
	data   bytea NOT NULL,
	PRIMARY KEY (run, parent, slot)
);

CREATE TABLE stone.questions (
	seq      bigint GENERATED ALWAYS AS IDENTITY,
	run      bigint NOT NULL,
	path     text COLLATE "C" NOT NULL,
	open     boolean NOT NULL,
	question text NOT NULL,
	seal     bytea NOT NULL,
	PRIMARY KEY (run, path)
);

-- The spending of each account, by day since 1970.
CREATE TABLE stone.spending (
	account         text COLLATE "C" NOT NULL,
	day             bigint NOT NULL,
	usd             double precision NOT NULL,
	tokens          bigint NOT NULL DEFAULT 0,
	roundtrips      bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (account, day)
);

CREATE INDEX days ON stone.spending (day);

-- Each process counts its commits here, so that it can find out whether a commit succeeded if it did not receive the response.
CREATE TABLE stone.writers (
	writer  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	commits bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Makes a transaction fail. The error code is meant for programs, the reason for the server's log.
CREATE FUNCTION stone.refuse(reason text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'stone: %', reason USING ERRCODE = 'STONE';
END $$;

-- Tables for data that a run keeps in addition to its records until it is removed: the batches of its requests, the receivers
-- of its notices, with their secrets, and the notices to send. A sent notice has next = 0. It is kept so that the same notice is
-- not sent again.

CREATE TABLE stone.batches (
	run  bigint NOT NULL,
	name text COLLATE "C" NOT NULL,
	open boolean NOT NULL,
	data text NOT NULL,
	seal bytea NOT NULL,
	PRIMARY KEY (run, name)
);

CREATE INDEX batches_outstanding ON stone.batches (run) WHERE open;

CREATE TABLE stone.receivers (
	run  bigint NOT NULL,
	name text COLLATE "C" NOT NULL,
	open boolean NOT NULL,
	data text NOT NULL,
	seal bytea NOT NULL,
	PRIMARY KEY (run, name)
);

CREATE TABLE stone.outbox (
	run      bigint NOT NULL,
	receiver text COLLATE "C" NOT NULL,
	event    text COLLATE "C" NOT NULL,
	name     text COLLATE "C" NOT NULL,
	at       bigint NOT NULL,
	next     bigint NOT NULL,
	tries    bigint NOT NULL,
	body     bytea,
	PRIMARY KEY (run, receiver, event, name)
);

CREATE INDEX outbox_due ON stone.outbox (next) WHERE next > 0;
