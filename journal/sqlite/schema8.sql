-- Version 8 notes which reservations belong to requests in batches. The default is that of a running step.

ALTER TABLE holds ADD COLUMN state INTEGER NOT NULL DEFAULT 0;

-- What a run has beside its records until it is removed: the batches of its requests, the receivers of notices about it, with
-- their secrets, and the notices that are owed. A notice is settled when nothing is next; it stays so that it is owed once.

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
