-- The outlines of large runs, as package journal/internal/outline encodes them.

CREATE TABLE stone.blocks (
	run    bigint NOT NULL,
	parent text COLLATE "C" NOT NULL,
	slot   text COLLATE "C" NOT NULL,
	counts bytea,
	seal   bytea NOT NULL,
	data   bytea NOT NULL,
	PRIMARY KEY (run, parent, slot)
);
