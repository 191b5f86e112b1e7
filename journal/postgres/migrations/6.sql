-- Which reservations belong to requests in batches. The default is that of a running step.

ALTER TABLE stone.holds ADD COLUMN state bigint NOT NULL DEFAULT 0;

-- Ends a transaction. The code is for programs, the reason for the log of the server.
CREATE FUNCTION stone.refuse(reason text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'stone: %', reason USING ERRCODE = 'STONE';
END $$;

-- What a run has beside its records until it is removed: the batches of its requests, the receivers of notices about it, with
-- their secrets, and the notices that are owed. A notice is settled when nothing is next; it stays so that it is owed once.

CREATE TABLE stone.batches (
	run  bigint NOT NULL,
	name text COLLATE "C" NOT NULL,
	open boolean NOT NULL,
	data text NOT NULL,
	seal bytea NOT NULL,
	PRIMARY KEY (run, name)
);

CREATE INDEX batches_outstanding ON stone.batches (run) WHERE open;

CREATE TABLE stone.receivers (
	run  bigint NOT NULL,
	name text COLLATE "C" NOT NULL,
	open boolean NOT NULL,
	data text NOT NULL,
	seal bytea NOT NULL,
	PRIMARY KEY (run, name)
);

CREATE TABLE stone.outbox (
	run      bigint NOT NULL,
	receiver text COLLATE "C" NOT NULL,
	event    text COLLATE "C" NOT NULL,
	name     text COLLATE "C" NOT NULL,
	at       bigint NOT NULL,
	next     bigint NOT NULL,
	tries    bigint NOT NULL,
	body     bytea,
	PRIMARY KEY (run, receiver, event, name)
);

CREATE INDEX outbox_due ON stone.outbox (next) WHERE next > 0;
