-- Version 1. What the columns hold is said in package journal/internal/log. Times are milliseconds of Unix time, 0 for none.

-- A run has a number that no other run ever gets (AUTOINCREMENT), since followers and fences know a run by it. Lists are
-- answered by index: what they ask for stands in columns. Cost and failure are computed of the outcome.
CREATE TABLE runs (
	run      INTEGER PRIMARY KEY AUTOINCREMENT,
	id       TEXT NOT NULL UNIQUE,
	owner    TEXT NOT NULL,
	beat     INTEGER NOT NULL,
	lease    INTEGER NOT NULL,
	outside  TEXT NOT NULL DEFAULT '',
	rows     INTEGER NOT NULL DEFAULT 0,
	state    TEXT NOT NULL DEFAULT '',
	tail     INTEGER NOT NULL DEFAULT 0,
	tip      INTEGER NOT NULL DEFAULT 0,
	pipeline TEXT NOT NULL DEFAULT '',
	started  INTEGER NOT NULL DEFAULT 0,
	ended    INTEGER NOT NULL DEFAULT 0,
	seal     BLOB,
	info     TEXT,
	outcome  TEXT,
	shape    TEXT,
	cost     REAL AS (iif(json_valid(outcome), coalesce(CAST(outcome ->> '$.usage.usd' AS REAL), 0), 0)) VIRTUAL,
	failure  TEXT AS (iif(json_valid(outcome),
		lower((outcome ->> '$.failure.kind') || ' ' || coalesce(outcome ->> '$.failure.path', '') || ' ' || coalesce(outcome ->> '$.failure.reason', '')), NULL)) VIRTUAL
) STRICT;

CREATE INDEX states ON runs (state, run);
CREATE INDEX pipelines ON runs (pipeline, run);
CREATE INDEX piped ON runs (pipeline, state, run);
CREATE INDEX starts ON runs (started, run, state);
CREATE INDEX ends ON runs (ended, run, state);
CREATE INDEX costs ON runs (cost, run);
CREATE INDEX failures ON runs (run, failure) WHERE failure IS NOT NULL;

CREATE TABLE labels (
	name  TEXT NOT NULL,
	value TEXT NOT NULL,
	run   INTEGER NOT NULL,
	PRIMARY KEY (name, value, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX labelled ON labels (run);

-- A row has its run in its seq, shifted left by 32 bits, plus its number: the rows of a run lie side by side in the order
-- in which they were written. That a run has one result for a digest is seen to by the holder of its lease, who
-- knows them all: a unique index would cost as much as the rows.
CREATE TABLE records (
	seq     INTEGER PRIMARY KEY,
	digest  BLOB,
	reuse   BLOB,
	node    BLOB,
	parents BLOB,
	path    TEXT,
	head    TEXT NOT NULL,
	seal    BLOB NOT NULL,
	content BLOB
) STRICT;

CREATE INDEX reusable ON records (reuse) WHERE reuse IS NOT NULL;
CREATE INDEX paths ON records (seq >> 32, path) WHERE path IS NOT NULL;
-- Grouped by 1,024 rows: ids are random, so with an index by them alone each new row would change another page.
CREATE INDEX nodes ON records (seq >> 10, node) WHERE node IS NOT NULL;

-- The outlines of large runs, as package journal/internal/outline encodes them.
CREATE TABLE blocks (
	run    INTEGER NOT NULL,
	parent TEXT NOT NULL,
	slot   TEXT NOT NULL,
	counts BLOB,
	seal   BLOB NOT NULL,
	data   BLOB NOT NULL,
	PRIMARY KEY (run, parent, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE questions (
	seq      INTEGER PRIMARY KEY,
	run      INTEGER NOT NULL,
	path     TEXT NOT NULL,
	open     INTEGER NOT NULL,
	question TEXT NOT NULL,
	seal     BLOB NOT NULL,
	UNIQUE (run, path)
) STRICT;

CREATE INDEX open ON questions (run) WHERE open;

-- What each account has spent by day of Unix time, and what running steps have reserved.
CREATE TABLE spending (
	account         TEXT NOT NULL,
	day             INTEGER NOT NULL,
	usd             REAL NOT NULL,
	tokens          INTEGER NOT NULL DEFAULT 0,
	roundtrips      INTEGER NOT NULL DEFAULT 0,
	held_usd        REAL NOT NULL DEFAULT 0,
	held_tokens     INTEGER NOT NULL DEFAULT 0,
	held_roundtrips INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (account, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX days ON spending (day);

-- State tells reservations of running steps, 0, from those of requests in batches.
CREATE TABLE holds (
	run        INTEGER NOT NULL,
	step       BLOB NOT NULL,
	account    TEXT NOT NULL,
	day        INTEGER NOT NULL,
	usd        REAL NOT NULL,
	tokens     INTEGER NOT NULL,
	roundtrips INTEGER NOT NULL,
	state      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (run, step, account)
) STRICT, WITHOUT ROWID;
