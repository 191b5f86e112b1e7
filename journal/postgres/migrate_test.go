package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
)

// Processes that open an empty database at once make its tables once.
func TestFirstOpen(t *testing.T) {
	address := pgtest.Database(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			db, err := Open(t.Context(), address, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// A schema of another version is refused, and an older one can be migrated.
func TestMigrate(t *testing.T) {
	address := pgtest.Database(t)
	if from, to, err := Migrate(t.Context(), address); from != 0 || to != version || err != nil {
		t.Fatalf("Migrate of an empty database: from %d to %d, %v; want from 0 to %d", from, to, err, version)
	}
	db := open(t, address, Options{})
	do(t, db, stepKey("r", 1))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, address, fmt.Sprintf("INSERT INTO stone.migrations VALUES (%d)", version+1))
	_, err := Open(t.Context(), address, Options{})
	_, _, migrating := Migrate(t.Context(), address)
	for _, err := range []error{err, migrating} {
		if want := fmt.Sprintf("has schema %d, this program knows %d: use a newer version of the program", version+1, version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a newer schema: %v, want %q", err, want)
		}
	}
	pgtest.Exec(t, address, fmt.Sprintf("DELETE FROM stone.migrations WHERE version > %d", version))
	before := version
	version++
	t.Cleanup(func() { version = before })
	if _, err := Open(t.Context(), address, Options{}); err == nil || !strings.HasSuffix(err.Error(), fmt.Sprintf("has schema %d, this program needs %d: run stone db migrate", before, version)) {
		t.Errorf("an older schema: %v, want that it is refused", err)
	}
	// The migration does not exist, so nothing changes.
	if _, _, err := Migrate(t.Context(), address); err == nil {
		t.Error("a migration that does not exist succeeded")
	}
	version = before
	if !do(t, open(t, address, Options{}), stepKey("r", 1)).Replayed {
		t.Error("after a failed migration the run is lost")
	}
}

// A migration that waits for somebody who reads for long, as pg_dump does, holds up every process that works meanwhile. So
// it gives up soon, changes nothing, and succeeds later.
func TestMigrateLocked(t *testing.T) {
	address := pgtest.Database(t)
	if err := open(t, address, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, address, "DELETE FROM stone.migrations WHERE version = 6; ALTER TABLE stone.holds DROP COLUMN state; DROP FUNCTION stone.refuse(text); DROP TABLE stone.batches, stone.receivers, stone.outbox")
	reader, err := pgconn.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close(context.Background())
	if _, err := reader.Exec(t.Context(), "BEGIN; LOCK TABLE stone.holds IN ACCESS SHARE MODE").ReadAll(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, _, err := Migrate(ctx, address); err == nil || !strings.Contains(err.Error(), "is locked by another process: try again later") {
		t.Errorf("migrated while somebody reads: %v", err)
	}
	if _, err := reader.Exec(t.Context(), "COMMIT").ReadAll(); err != nil {
		t.Fatal(err)
	}
	if from, to, err := Migrate(ctx, address); from != 5 || to != version || err != nil {
		t.Errorf("migrated from %d to %d, %v", from, to, err)
	}
}

// The page of formats has the present version.
func TestVersionOfPage(t *testing.T) {
	want := fmt.Sprintf("the table `stone.migrations` | %d |", version)
	if text, err := os.ReadFile("../../docs/reference/formats.md"); err != nil || !strings.Contains(string(text), want) {
		t.Errorf("docs/reference/formats.md does not say %q, %v", want, err)
	}
}

// A setting on which the promises depend is checked.
func TestUnsuitableServer(t *testing.T) {
	address := pgtest.Database(t)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name := at.Path[1:]
	pgtest.Exec(t, address, "ALTER DATABASE "+name+" SET synchronous_commit = off")
	if _, err := Open(t.Context(), address, Options{}); err == nil || !strings.Contains(err.Error(), "has synchronous_commit off, which loses acknowledged steps: set it on for this user") {
		t.Errorf("a database that does not wait for its disk: %v", err)
	}
	pgtest.Exec(t, address, "CREATE DATABASE "+name+"_latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'")
	t.Cleanup(func() { pgtest.Exec(t, address, "DROP DATABASE "+name+"_latin WITH (FORCE)") })
	if _, err := Open(t.Context(), strings.Replace(address, name, name+"_latin", 1), Options{}); err == nil || !strings.Contains(err.Error(), "has the encoding LATIN1") {
		t.Errorf("a database with another encoding: %v", err)
	}
}

// Errors have one line and say nothing twice, name the database and say what to do, and have no password.
func TestErrors(t *testing.T) {
	const password = "pa55word-of-the-database"
	address := pgtest.Database(t)
	pgtest.Exec(t, address, "DO $$ BEGIN CREATE ROLE stranger LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
	t.Cleanup(func() { pgtest.Exec(t, address, "DROP ROLE stranger") })
	secret := func(user string) string { return strings.Replace(address, "stone@", user+":"+password+"@", 1) }
	fast := Options{Retry: 100 * time.Millisecond}
	for name, c := range map[string]struct{ address, want string }{
		"no address":  {"postgres://u:" + password + "@%zz/n", "the address of the database cannot be read"},
		"no server":   {"postgres://u:" + password + "@127.0.0.1:1/n?connect_timeout=1", "database postgres://u@127.0.0.1:1/n does not answer: check that the server runs"},
		"no settings": {"host=127.0.0.1 port=1 user=u dbname=n sslmode=none password=" + password, "the address of the database cannot be read"},
		"no database": {strings.Replace(secret("stone"), "/stone_", "/none_", 1), "does not exist: make it with createdb"},
		"no user":     {secret("nobody"), "refuses the user: check the user and the password"},
		"no right":    {secret("stranger"), "lacks a permission: grant CREATE on the database"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), c.address, fast)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), "connection refused") > 1 {
				t.Errorf("error %q, want %q once in one line", err, c.want)
			}
			if passing := errors.Is(err, journal.ErrUnavailable); passing != (name == "no server") {
				t.Errorf("errors.Is(%q, journal.ErrUnavailable) is %t", err, passing)
			}
			for ; err != nil; err = errors.Unwrap(err) {
				if strings.Contains(fmt.Sprintf("%v %+v", err, err), password) {
					t.Errorf("the error has the password: %+v", err)
				}
			}
		})
	}
	if _, err := Open(t.Context(), address, Options{Lease: -1}); err == nil || !strings.Contains(err.Error(), "must not be negative") {
		t.Errorf("a negative lease: %v", err)
	}
	if _, err := Open(t.Context(), address, Options{Listen: "postgres://%zz"}); err == nil || !strings.Contains(err.Error(), "Listen: the address") {
		t.Errorf("an unreadable Listen: %v", err)
	}
	if db := open(t, secret("stone"), Options{}); strings.Contains(db.database.name, password) {
		t.Errorf("the name %s has the password", db.database.name)
	}
}
