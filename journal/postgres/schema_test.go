package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

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

// A schema of another version is refused.
func TestOtherVersion(t *testing.T) {
	address := pgtest.Database(t)
	if err := open(t, address, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, address, "UPDATE stone.version SET version = 77")
	if _, err := Open(t.Context(), address, Options{}); err == nil || !strings.Contains(err.Error(), "has schema 77, this program knows 1: use the version that made it, or a newer one") {
		t.Errorf("another schema: %v", err)
	}
	pgtest.Exec(t, address, "DELETE FROM stone.version") // as if somebody had emptied it
	if _, err := Open(t.Context(), address, Options{}); err == nil || !strings.Contains(err.Error(), "has schema 0, this program knows 1") {
		t.Errorf("no version: %v", err)
	}
}

// The page of formats has the present version.
func TestVersionOfPage(t *testing.T) {
	want := fmt.Sprintf("the table `stone.version` | %d |", version)
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
		"no server":   {"postgres://u:" + password + "@127.0.0.1:1/n?connect_timeout=1", "database postgres://u@127.0.0.1:1/n does not answer: check that the server is running"},
		"no settings": {"host=127.0.0.1 port=1 user=u dbname=n sslmode=none password=" + password, "the address of the database cannot be read"},
		"no database": {strings.Replace(secret("stone"), "/stone_", "/none_", 1), "does not exist: create it with createdb"},
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
