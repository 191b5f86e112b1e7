-- Which reservations belong to requests in batches. The default is that of a running step.

ALTER TABLE stone.holds ADD COLUMN state bigint NOT NULL DEFAULT 0;
