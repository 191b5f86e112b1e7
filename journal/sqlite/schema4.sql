-- Version 4 adds an index of unfinished runs, and the outlines of large runs, as package
-- journal/internal/outline encodes them. The index of nodes is grouped by 1,024 rows. Since ids
-- are random, each new row changed another page of the old index: half of the pages that commits wrote.

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
