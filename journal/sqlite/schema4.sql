-- Version 4 adds an index of unfinished runs, and the outlines of large runs, as package
-- journal/internal/outline encodes them. It groups the index of nodes by 1,024 rows: ids are random,
-- so each row of an index over all of them changed a page of its own, half of what commits wrote.

CREATE INDEX unfinished ON runs (run) WHERE state NOT IN ('done', 'failed', 'canceled');

DROP INDEX nodes;
CREATE INDEX nodes ON records (seq >> 10, node) WHERE node IS NOT NULL;

CREATE TABLE blocks (
	run    INTEGER NOT NULL,
	parent TEXT NOT NULL,
	slot   TEXT NOT NULL,
	counts BLOB,
	seal   BLOB NOT NULL,
	data   BLOB NOT NULL,
	PRIMARY KEY (run, parent, slot)
) STRICT, WITHOUT ROWID;
