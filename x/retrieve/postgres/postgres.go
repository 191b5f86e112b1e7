// Package postgres stores an index of package retrieve in a PostgreSQL database, version 14 or later, which several servers can
// share.
//
// It needs no extension. PostgreSQL ranks the words as English. It ranks all pieces that contain rare words, and at most 5,000
// pieces that contain only frequent words, preferring those that contain the most of them. Vectors are compared in this process.
// The first search reads their codes: 80 MB for 200,000 vectors of 1,536 numbers.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/x/retrieve"
)

// schema is the name of the database schema that contains the tables of an index.
const schema = "stone_index"

// format is the version of the tables that this program supports.
const format = 1

var tables = []string{
	`CREATE SCHEMA IF NOT EXISTS ` + schema,
	`CREATE TABLE IF NOT EXISTS about (name text PRIMARY KEY, value text NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS documents (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, digest text NOT NULL, meta jsonb NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS pieces (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, document bigint NOT NULL REFERENCES documents, digest text NOT NULL,
		heading text NOT NULL, text text NOT NULL, first int NOT NULL, last int NOT NULL, page int NOT NULL,
		words tsvector)`,
	`CREATE INDEX IF NOT EXISTS pieces_document ON pieces (document)`,
	`CREATE INDEX IF NOT EXISTS pieces_digest ON pieces (digest)`,
	`CREATE INDEX IF NOT EXISTS pieces_words ON pieces USING gin (words)`,
	`CREATE TABLE IF NOT EXISTS vectors (digest text PRIMARY KEY, vector bytea NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS blocks (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, keys bytea NOT NULL, codes bytea NOT NULL)`,
	`ALTER TABLE blocks ALTER COLUMN codes SET STORAGE EXTERNAL`, // codes cannot be compressed
	fmt.Sprintf(`INSERT INTO about (name, value) VALUES ('format', '%[1]d') ON CONFLICT (name) DO UPDATE SET value = '%[1]d'`, format),
}

// Open opens the index in a database, such as "postgres://stone@db.example.com/docs". If the schema stone_index has no tables
// yet, they are created.
func Open(ctx context.Context, address string) (*retrieve.Store, error) {
	return open(ctx, address, true)
}

// Part lets the commands of a program, and its capabilities of the kind search, use indexes in PostgreSQL.
var Part = stores.Imported{}

func init() { retrieve.Register("postgres", open) }

func open(ctx context.Context, address string, make bool) (*retrieve.Store, error) {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errors.New("the address of the database cannot be read: want postgres://USER@HOST/NAME") // the error contains the address
	}
	cfg.RuntimeParams["search_path"] = schema
	db := stdlib.OpenDB(*cfg)
	name := cfg.Host + "/" + cfg.Database
	var there, readable bool
	err = db.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE c.relname = 'vectors') > 0,
		coalesce(bool_and(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')), true)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`, schema).Scan(&there, &readable)
	switch {
	case err != nil:
		err = fmt.Errorf("index %s: %w", name, err)
	case !there && !make:
		err = fmt.Errorf("%w in %s", retrieve.ErrNone, name)
	case !readable:
		err = fmt.Errorf("index %s: the role %s may not read it: GRANT USAGE ON SCHEMA %s, and SELECT ON ALL TABLES IN SCHEMA %s", name, cfg.User, schema, schema)
	case there:
		if err = known(ctx, db); err != nil {
			err = fmt.Errorf("index %s: %w", name, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	missing := tables
	if there || !make { // a role that may only search cannot create a schema, even if it exists
		missing = nil
	}
	d := retrieve.Dialect{
		Name: name, Schema: missing, Numbered: true, Remote: true, Claim: claim, PutWords: putWords, Words: fewWords.query(), Choose: fewWords.choose, Among: ` AND p.document IN (SELECT d.id FROM documents d WHERE true %s)`, Meta: `d.meta ->> ?::text = ?`,
		Lock: `SELECT pg_advisory_xact_lock(7310034)`, // one writer at a time, as in SQLite
	}
	s, err := retrieve.NewStore(ctx, db, d)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// putWords stores the words of the heading before the words of the text.
const putWords = `WITH new (id, heading, text) AS (VALUES (?::bigint, ?::text, ?::text)) UPDATE pieces SET words =
	setweight(to_tsvector('english', new.heading), 'A') || setweight(to_tsvector('english', new.text), 'B') FROM new WHERE pieces.id = new.id`

// known returns an error if the tables of the index have another format.
func known(ctx context.Context, db *sql.DB) error {
	made := 0
	err := db.QueryRowContext(ctx, `SELECT coalesce(max(value::int), 0) FROM about WHERE name = 'format'`).Scan(&made)
	if err == nil && made != format {
		err = fmt.Errorf("it has format %d, and this program knows %d: use the program that made it, or drop the schema %s and build it anew", made, format, schema)
	}
	return err
}

// claim acquires a lock of the connection, which the server releases if this process dies.
func claim(ctx context.Context, db *sql.DB) (release func() error, ours bool, err error) {
	const key = "7310035"
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, false, err
	}
	if err = conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock(`+key+`)`).Scan(&ours); err != nil || !ours {
		return nil, false, errors.Join(err, conn.Close())
	}
	return func() error {
		_, err := conn.ExecContext(context.Background(), `SELECT pg_advisory_unlock(`+key+`)`)
		return errors.Join(err, conn.Close())
	}, true, nil
}
