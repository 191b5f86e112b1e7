-- What the columns hold is said in package journal/internal/log. JSON is text: it is
-- sealed byte for byte.

CREATE TABLE stone.runs (
	run     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id      text COLLATE "C" NOT NULL UNIQUE,
	owner   text COLLATE "C" NOT NULL,
	beat    bigint NOT NULL,
	lease   bigint NOT NULL,
	outside text COLLATE "C" NOT NULL,
	rows    bigint NOT NULL DEFAULT 0,
	state   text COLLATE "C" NOT NULL DEFAULT '',
	tail    bigint NOT NULL DEFAULT 0,
	tip     bigint NOT NULL DEFAULT 0,
	seal    bytea,
	info    text,
	outcome text,
	shape   text
) WITH (fillfactor = 50); -- a beat changes no index, so it stays on its page

CREATE INDEX states ON stone.runs (state, run);

-- Only the holder of a run adds records to it, under the lock of its row in runs. The key
-- also refuses the second half of a commit that was written twice.
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

CREATE TABLE stone.questions (
	seq      bigint GENERATED ALWAYS AS IDENTITY,
	run      bigint NOT NULL,
	path     text COLLATE "C" NOT NULL,
	open     boolean NOT NULL,
	question text NOT NULL,
	seal     bytea NOT NULL,
	PRIMARY KEY (run, path)
);

-- Each process counts its commits here, so that it can find out about a commit whose
-- answer it did not get.
CREATE TABLE stone.writers (
	writer  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	commits bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
