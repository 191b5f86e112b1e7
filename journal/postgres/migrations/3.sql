-- State, pipeline, labels, start and end of a run stand in columns, so that the queries of lists are
-- answered by index. Times are milliseconds of Unix time, 0 for none. What each account has spent
-- by day has a table of its own.

ALTER TABLE stone.runs
	ADD COLUMN pipeline text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN started bigint NOT NULL DEFAULT 0,
	ADD COLUMN ended bigint NOT NULL DEFAULT 0;

CREATE TABLE stone.labels (
	name  text COLLATE "C" NOT NULL,
	value text COLLATE "C" NOT NULL,
	run   bigint NOT NULL,
	PRIMARY KEY (name, value, run)
);

-- A row that is damaged keeps the defaults.
DO $$
DECLARE r record;
BEGIN
	FOR r IN SELECT run, info, outcome FROM stone.runs WHERE info IS NOT NULL LOOP
		BEGIN
			UPDATE stone.runs SET
				pipeline = substr(coalesce(r.info::json ->> 'pipeline', ''), 1, 100),
				started = coalesce(floor(extract(epoch FROM (r.info::json ->> 'started')::timestamptz) * 1000), 0),
				ended = coalesce(floor(extract(epoch FROM (r.outcome::json ->> 'ended')::timestamptz) * 1000), 0)
			WHERE run = r.run;
			INSERT INTO stone.labels
				SELECT substr(key, 1, 100), substr(value, 1, 100), r.run FROM json_each_text(r.info::json -> 'labels')
				ON CONFLICT DO NOTHING;
		EXCEPTION WHEN data_exception THEN
		END;
	END LOOP;
END $$;

CREATE INDEX labelled ON stone.labels (run);
CREATE INDEX pipelines ON stone.runs (pipeline, run);
CREATE INDEX starts ON stone.runs (started, run, state);
CREATE INDEX ends ON stone.runs (ended, run, state);

CREATE TABLE stone.spending (
	account text COLLATE "C" NOT NULL,
	day     bigint NOT NULL, -- days of Unix time
	usd     double precision NOT NULL,
	PRIMARY KEY (account, day)
);

CREATE INDEX days ON stone.spending (day);

-- Without statistics the server would not use these indexes until it makes its own.
ANALYZE stone.runs;
ANALYZE stone.labels;
