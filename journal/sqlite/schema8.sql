-- Version 8 notes which reservations belong to requests in batches. The default is that of a running step.

ALTER TABLE holds ADD COLUMN state INTEGER NOT NULL DEFAULT 0;
