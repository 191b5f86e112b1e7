-- What the columns hold is said in package journal/internal/log. A row of records
-- has its run in its seq, shifted left by 32 bits, plus its number: the rows of a
-- run lie side by side in the order in which they were written.

CREATE TABLE runs (
	run     INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	owner   TEXT NOT NULL,
	beat    INTEGER NOT NULL,
	lease   INTEGER NOT NULL,
	outside TEXT NOT NULL DEFAULT '',
	rows    INTEGER NOT NULL DEFAULT 0,
	state   TEXT NOT NULL DEFAULT '',
	tail    INTEGER NOT NULL DEFAULT 0,
	tip     INTEGER NOT NULL DEFAULT 0,
	seal    BLOB,
	info    TEXT,
	outcome TEXT,
	shape   TEXT
) STRICT;

-- That a run has one result for a digest is seen to by the holder of its lease, who
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
CREATE INDEX nodes ON records (node) WHERE node IS NOT NULL;

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
