package postgres

import (
	"context"
	"embed"
	"fmt"
	"strconv"
)

//go:embed migrations/*.sql
var migrations embed.FS

// version is the number of the newest migration. They are numbered from 1.
var version = newest()

func newest() int {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		panic(err) // they are in the program
	}
	return len(files)
}

// lockMigration makes migrations wait for each other: the number is made of the bytes of
// "stone".
const lockMigration = "SELECT pg_advisory_xact_lock(495874698853)"

// versionOf returns the version of the schema, 0 if there is none.
func (d *database) versionOf(ctx context.Context) (int, error) {
	found, err := rows(ctx, d.reader, func(v [][]byte) bool { return v[0] != nil }, "SELECT to_regclass('stone.migrations')::text")
	if err != nil || !found[0] {
		return 0, err
	}
	last, err := rows(ctx, d.reader, func(v [][]byte) int { return int(integer(v[0])) }, "SELECT coalesce(max(version), 0)::bigint FROM stone.migrations")
	if err != nil {
		return 0, err
	}
	return last[0], nil
}

// current makes the tables of an empty database, and otherwise checks their version: a
// migration of a database with runs is the decision of a person.
func (d *database) current(ctx context.Context) error {
	has, err := d.versionOf(ctx)
	switch {
	case err != nil:
		return err
	case has == 0:
		_, err = d.migrate(ctx)
		return err
	case has > version:
		return fmt.Errorf("%s has schema %d, this program knows %d: use a newer version of the program", d.name, has, version)
	case has < version:
		return fmt.Errorf("%s has schema %d, this program needs %d: run stone db migrate", d.name, has, version)
	}
	return nil
}

// migrate brings the schema to this program's version and returns the version it had.
func (d *database) migrate(ctx context.Context) (before int, err error) {
	conn, err := d.pool.take(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { d.pool.give(conn) }() // which ends a transaction that failed
	do := func(text string) error {
		_, err := conn.Exec(ctx, text).ReadAll()
		return err
	}
	// Whoever comes after a migration that waits for a lock waits too, also processes that work.
	if err = do("BEGIN; " + lockMigration + "; SET LOCAL lock_timeout = '3s'"); err != nil {
		return 0, err
	}
	// CREATE SCHEMA needs a permission even for a schema that exists.
	if err = do(`DO $$ BEGIN IF to_regnamespace('stone') IS NULL THEN CREATE SCHEMA stone; END IF; END $$;
		CREATE TABLE IF NOT EXISTS stone.migrations (version bigint PRIMARY KEY)`); err != nil {
		return 0, err
	}
	results, err := conn.Exec(ctx, "SELECT coalesce(max(version), 0) FROM stone.migrations").ReadAll()
	if err == nil {
		before, err = strconv.Atoi(string(results[0].Rows[0][0]))
	}
	if err != nil {
		return 0, err
	}
	if before > version {
		return 0, fmt.Errorf("%s has schema %d, this program knows %d: use a newer version of the program", d.name, before, version)
	}
	for n := before + 1; n <= version; n++ {
		text, err := migrations.ReadFile(fmt.Sprintf("migrations/%d.sql", n))
		if err != nil {
			return 0, err
		}
		if err := do(fmt.Sprintf("%s; INSERT INTO stone.migrations VALUES (%d)", text, n)); err != nil {
			return 0, fmt.Errorf("migration %d: %w", n, err)
		}
	}
	return before, do("COMMIT")
}
