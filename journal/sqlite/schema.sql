-- A row's seq is its run shifted left by 32 bits, plus a count: the rows of a
-- run lie side by side in the order in which they were written.

CREATE TABLE runs (
	run   INTEGER PRIMARY KEY,
	id    TEXT NOT NULL UNIQUE,
	owner TEXT NOT NULL,    -- who holds the lease, '' for nobody
	beat  INTEGER NOT NULL, -- grows as long as the owner lives
	lease INTEGER NOT NULL  -- milliseconds that a beat is good for
) STRICT;

-- What was done. A row without a digest is a node that no step made, such as
-- the input, a marker of a fan-out or what a reused record became.
CREATE TABLE records (
	seq     INTEGER PRIMARY KEY,
	run     INTEGER NOT NULL REFERENCES runs,
	digest  BLOB,
	reuse   BLOB,
	path    TEXT,
	kind    TEXT,
	name    TEXT,
	node    BLOB, -- id
	parents BLOB, -- ids, 32 bytes each
	type    TEXT NOT NULL,
	content BLOB,
	meta    TEXT, -- JSON
	time    TEXT NOT NULL,
	failure TEXT, -- JSON
	sum     BLOB NOT NULL,
	seal    BLOB NOT NULL, -- of the columns that are replayed
	UNIQUE (run, digest)
) STRICT;

CREATE INDEX reusable ON records (reuse) WHERE reuse IS NOT NULL AND failure IS NULL;

-- What was begun: a JSON array of steps for each commit, so that an intent costs
-- some bytes and not a row.
CREATE TABLE intents (
	seq   INTEGER PRIMARY KEY,
	steps TEXT NOT NULL
) STRICT;
