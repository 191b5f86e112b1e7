-- A row of records has its run in its seq, shifted left by 32 bits, plus a count:
-- the rows of a run lie side by side in the order in which they were written.

CREATE TABLE runs (
	run     INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	owner   TEXT NOT NULL,    -- who holds the lease, '' for nobody
	beat    INTEGER NOT NULL, -- grows as long as the owner lives
	lease   INTEGER NOT NULL, -- milliseconds that a beat is good for
	info    TEXT,             -- JSON, NULL until the run is begun
	shape   TEXT,             -- JSON, of the pipeline
	outcome TEXT,             -- JSON
	tail    INTEGER,          -- the first and the last seq of the rows
	tip     INTEGER           -- that only belong to that outcome
) STRICT;

-- What was done: with a digest a result, with a node only a node that no step
-- made, such as the input, a marker of a fan-out or what a reused record became,
-- with neither what was begun. That a run has one result for a digest is seen to
-- by the holder of its lease, who knows them all: an index would cost as much as
-- the rows.
CREATE TABLE records (
	seq     INTEGER PRIMARY KEY,
	digest  BLOB,
	reuse   BLOB, -- NULL also for a failure
	node    BLOB, -- id
	parents BLOB, -- ids, 32 bytes each
	head    TEXT NOT NULL, -- JSON: all but the content
	seal    BLOB, -- of the columns that are replayed
	content BLOB
) STRICT;

CREATE INDEX reusable ON records (reuse) WHERE reuse IS NOT NULL;

CREATE TABLE questions (
	seq      INTEGER PRIMARY KEY,
	run      INTEGER NOT NULL REFERENCES runs,
	path     TEXT NOT NULL,
	question TEXT NOT NULL, -- JSON
	UNIQUE (run, path)
) STRICT;
