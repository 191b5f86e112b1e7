-- Version 6 answers by index what lists are searched for: the cost and the failure of a run, and the states of a
-- pipeline. Cost and failure are computed of the outcome, so that older programs, which write only that, keep them right.

ALTER TABLE runs ADD COLUMN cost REAL AS (iif(json_valid(outcome), coalesce(CAST(outcome ->> '$.usage.usd' AS REAL), 0), 0)) VIRTUAL;
ALTER TABLE runs ADD COLUMN failure TEXT AS (iif(json_valid(outcome),
	lower((outcome ->> '$.failure.kind') || ' ' || coalesce(outcome ->> '$.failure.path', '') || ' ' || coalesce(outcome ->> '$.failure.reason', '')), NULL)) VIRTUAL;

CREATE INDEX costs ON runs (cost, run);
CREATE INDEX failures ON runs (run, failure) WHERE failure IS NOT NULL;
CREATE INDEX piped ON runs (pipeline, state, run);
