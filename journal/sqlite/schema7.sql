-- Version 7 counts tokens and requests of budgets over several runs, and what running steps have reserved of them. The
-- columns that older programs do not know have defaults. It also keeps what processes share of the rates of servers.

ALTER TABLE spending ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spending ADD COLUMN roundtrips INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spending ADD COLUMN held_usd REAL NOT NULL DEFAULT 0;
ALTER TABLE spending ADD COLUMN held_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spending ADD COLUMN held_roundtrips INTEGER NOT NULL DEFAULT 0;

CREATE TABLE holds (
	run        INTEGER NOT NULL,
	step       BLOB NOT NULL,
	account    TEXT NOT NULL,
	day        INTEGER NOT NULL,
	usd        REAL NOT NULL,
	tokens     INTEGER NOT NULL,
	roundtrips INTEGER NOT NULL,
	PRIMARY KEY (run, step, account)
) STRICT, WITHOUT ROWID;

CREATE TABLE rates (
	name  TEXT NOT NULL PRIMARY KEY,
	state BLOB NOT NULL
) STRICT, WITHOUT ROWID;
