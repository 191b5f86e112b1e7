-- Version 4 adds an index of unfinished runs, and the outlines of large runs, as package
-- journal/internal/outline encodes them.

CREATE INDEX unfinished ON runs (run) WHERE state NOT IN ('done', 'failed', 'canceled');

CREATE TABLE blocks (
	run    INTEGER NOT NULL,
	parent TEXT NOT NULL,
	slot   TEXT NOT NULL,
	counts BLOB,
	seal   BLOB NOT NULL,
	data   BLOB NOT NULL,
	PRIMARY KEY (run, parent, slot)
) STRICT, WITHOUT ROWID;
