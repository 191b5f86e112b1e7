-- Cost and failure of a run are computed of its outcome, so that lists are searched by index and older programs, which
-- write only the outcome, keep them right.

CREATE FUNCTION stone.cost_of(outcome text) RETURNS double precision LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	RETURN coalesce((outcome::json -> 'usage' ->> 'usd')::double precision, 0);
EXCEPTION WHEN data_exception THEN
	RETURN 0; -- a damaged row
END $$;

CREATE FUNCTION stone.failure_of(outcome text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE f json;
BEGIN
	f := outcome::json -> 'failure';
	RETURN lower((f ->> 'kind') || ' ' || coalesce(f ->> 'path', '') || ' ' || coalesce(f ->> 'reason', ''));
EXCEPTION WHEN data_exception THEN
	RETURN NULL;
END $$;

ALTER TABLE stone.runs
	ADD COLUMN cost double precision NOT NULL GENERATED ALWAYS AS (stone.cost_of(outcome)) STORED,
	ADD COLUMN failure text COLLATE "C" GENERATED ALWAYS AS (stone.failure_of(outcome)) STORED;

CREATE INDEX costs ON stone.runs (cost, run);
CREATE INDEX failures ON stone.runs (run) WHERE failure IS NOT NULL;
CREATE INDEX piped ON stone.runs (pipeline, state, run);
