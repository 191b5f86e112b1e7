-- Version 1. Package journal/internal/log describes the columns. Times are in Unix milliseconds; 0 means no time.

-- The number of a run is never reused (AUTOINCREMENT), because followers and fences identify a run by its number. Lists are
-- read from indexes on columns. The database computes cost and failure from the outcome. Each index that is changed by the
-- start or end of a run costs a page of the log, so an index contains only what its lists need.
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
CREATE INDEX piped ON runs (pipeline, state, run) WHERE state NOT IN ('', 'running');
CREATE INDEX starts ON runs (started, run);
CREATE INDEX ends ON runs (ended, run, state) WHERE ended <> 0;
CREATE INDEX costs ON runs (cost, run) WHERE cost <> 0;
CREATE INDEX failures ON runs (run, failure) WHERE failure IS NOT NULL;

CREATE TABLE labels (
	name  TEXT NOT NULL,
	value TEXT NOT NULL,
	run   INTEGER NOT NULL,
	PRIMARY KEY (name, value, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX labelled ON labels (run);

-- The seq of a row is the number of its run, shifted left by 32 bits, plus the number of the row, so the rows of a run are
-- stored together in the order in which they were written. The holder of the lease, which knows all results of a run, ensures
-- that there is only one for each digest: a unique index would cost as much as the rows.
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
-- Grouped by 1,024 rows, because IDs are random: in an index on the ID alone, each new row would change a different page.
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

-- The spending of each account, by day since 1970.
CREATE TABLE spending (
	account         TEXT NOT NULL,
	day             INTEGER NOT NULL,
	usd             REAL NOT NULL,
	tokens          INTEGER NOT NULL DEFAULT 0,
	roundtrips      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (account, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX days ON spending (day);

-- Tables for data that a run keeps in addition to its records until it is removed: the batches of its requests, the receivers
-- of its notices, with their secrets, and the notices to send. A sent notice has next = 0. It is kept so that the same notice is
-- not sent again.

CREATE TABLE batches (
	run  INTEGER NOT NULL,
	name TEXT NOT NULL,
	open INTEGER NOT NULL,
	data TEXT NOT NULL,
	seal BLOB NOT NULL,
	PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX outstanding ON batches (run) WHERE open;

CREATE TABLE receivers (
	run  INTEGER NOT NULL,
	name TEXT NOT NULL,
	open INTEGER NOT NULL,
	data TEXT NOT NULL,
	seal BLOB NOT NULL,
	PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
	run      INTEGER NOT NULL,
	receiver TEXT NOT NULL,
	event    TEXT NOT NULL,
	name     TEXT NOT NULL,
	at       INTEGER NOT NULL,
	next     INTEGER NOT NULL,
	tries    INTEGER NOT NULL,
	body     BLOB,
	PRIMARY KEY (run, receiver, event, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX due ON outbox (next) WHERE next > 0;
