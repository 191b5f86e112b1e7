-- Version 5 gives each run a number that no other run ever gets (AUTOINCREMENT), since followers and
-- fences know a run by it. It answers the queries of lists by index: state, pipeline, labels, start
-- and end stand in columns. Times are milliseconds of Unix time, 0 for none. It also adds what each
-- account has spent by day.

CREATE TABLE numbered (
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
	shape    TEXT
) STRICT;

INSERT INTO numbered
	SELECT run, id, owner, beat, lease, outside, rows, state, tail, tip,
		iif(json_valid(info), coalesce(info ->> 'pipeline', ''), ''),
		iif(json_valid(info), coalesce(CAST(unixepoch(info ->> 'started', 'subsec') * 1000 AS INTEGER), 0), 0),
		iif(json_valid(outcome), coalesce(CAST(unixepoch(outcome ->> 'ended', 'subsec') * 1000 AS INTEGER), 0), 0),
		seal, info, outcome, shape
	FROM runs ORDER BY run;

CREATE TABLE labels (
	name  TEXT NOT NULL,
	value TEXT NOT NULL,
	run   INTEGER NOT NULL,
	PRIMARY KEY (name, value, run)
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO labels
	SELECT label.key, label.value, run FROM runs, json_each(iif(json_valid(info), info, '{}'), '$.labels') label
	WHERE label.type = 'text';

CREATE INDEX labelled ON labels (run);

DROP TABLE runs;
ALTER TABLE numbered RENAME TO runs;

CREATE INDEX states ON runs (state, run);
CREATE INDEX pipelines ON runs (pipeline, run);
CREATE INDEX starts ON runs (started, run, state);
CREATE INDEX ends ON runs (ended, run, state);

CREATE TABLE spending (
	account TEXT NOT NULL,
	day     INTEGER NOT NULL, -- days of Unix time
	usd     REAL NOT NULL,
	PRIMARY KEY (account, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX days ON spending (day);
