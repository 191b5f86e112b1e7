package postgres

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed schema.sql
var schema string

// version is the version of the schema.
const version = 1

// lockSchema makes processes that want to create the tables wait for each other. The number encodes the bytes of "stone".
const lockSchema = "SELECT pg_advisory_xact_lock(495874698853)"

// versionOf returns the version of the schema, or 0 if the schema does not exist.
func (d *database) versionOf(ctx context.Context) (int, error) {
	found, err := rows(ctx, d.reader, func(v [][]byte) bool { return v[0] != nil }, "SELECT to_regclass('stone.version')::text")
	if err != nil || !found[0] {
		return 0, err
	}
	last, err := rows(ctx, d.reader, func(v [][]byte) int { return int(integer(v[0])) }, "SELECT coalesce(max(version), 0)::bigint FROM stone.version")
	if err != nil {
		return 0, err
	}
	return last[0], nil
}

// current creates the tables in an empty database. If there are tables, it checks their version.
func (d *database) current(ctx context.Context) error {
	has, err := d.versionOf(ctx)
	if err == nil && has == 0 {
		if err = d.make(ctx); err == nil {
			has, err = d.versionOf(ctx)
		}
	}
	if err == nil && has != version {
		err = fmt.Errorf("%s has schema %d, this program knows %d: use the version that made it, or a newer one", d.name, has, version)
	}
	return err
}

// make creates the tables in an empty database. Several processes may call it at the same time.
func (d *database) make(ctx context.Context) error {
	conn, err := d.pool.take(ctx)
	if err != nil {
		return err
	}
	defer func() { d.pool.give(conn) }() // give closes the connection, and so ends the transaction, after an error
	do := func(text string) error {
		_, err := conn.Exec(ctx, text).ReadAll()
		return err
	}
	if err = do("BEGIN; " + lockSchema); err != nil {
		return err
	}
	// Unlike to_regclass, a query on a table sees what other processes have committed since this transaction began.
	found, err := conn.Exec(ctx, "SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'stone' AND c.relname = 'version'").ReadAll()
	if err != nil || len(found[0].Rows) > 0 {
		return err
	}
	// CREATE SCHEMA requires a permission even if the schema exists.
	return do(fmt.Sprintf(`DO $$ BEGIN IF to_regnamespace('stone') IS NULL THEN CREATE SCHEMA stone; END IF; END $$;
		%s; CREATE TABLE stone.version (version bigint PRIMARY KEY); INSERT INTO stone.version VALUES (%d); COMMIT`, schema, version))
}
