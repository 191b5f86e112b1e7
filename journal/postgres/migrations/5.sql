-- Tokens and requests of budgets over several runs, and what running steps have reserved of them. The columns that
-- older programs do not know have defaults. Rates has what processes share of the rates of servers.

ALTER TABLE stone.spending
	ADD COLUMN tokens bigint NOT NULL DEFAULT 0,
	ADD COLUMN roundtrips bigint NOT NULL DEFAULT 0,
	ADD COLUMN held_usd double precision NOT NULL DEFAULT 0,
	ADD COLUMN held_tokens bigint NOT NULL DEFAULT 0,
	ADD COLUMN held_roundtrips bigint NOT NULL DEFAULT 0;

CREATE TABLE stone.holds (
	run        bigint NOT NULL,
	step       bytea NOT NULL,
	account    text COLLATE "C" NOT NULL,
	day        bigint NOT NULL,
	usd        double precision NOT NULL,
	tokens     bigint NOT NULL,
	roundtrips bigint NOT NULL,
	PRIMARY KEY (run, step, account)
);

CREATE TABLE stone.rates (
	name  text COLLATE "C" PRIMARY KEY,
	state bytea NOT NULL
);
