-- Which reservations belong to requests in batches. The default is that of a running step.

ALTER TABLE stone.holds ADD COLUMN state bigint NOT NULL DEFAULT 0;

-- Ends a transaction. The code is for programs, the reason for the log of the server.
CREATE FUNCTION stone.refuse(reason text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'stone: %', reason USING ERRCODE = 'STONE';
END $$;
