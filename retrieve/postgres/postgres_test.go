package postgres_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/pgtest"
	"github.com/stonelayer/stone/retrieve"
	"github.com/stonelayer/stone/retrieve/internal/storetest"
	"github.com/stonelayer/stone/retrieve/postgres"
)

func TestStore(t *testing.T) {
	storetest.Test(t, func(t *testing.T) func() (*retrieve.Store, error) {
		address := pgtest.Database(t)
		return func() (*retrieve.Store, error) { return postgres.Open(context.Background(), address) }
	})
}

// A role that may only read opens the index and searches.
func TestReadingRole(t *testing.T) {
	address := pgtest.Database(t)
	owner, err := postgres.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	role := "reader_" + strings.ToLower(rand.Text()[:8])
	pgtest.Exec(t, address, "CREATE ROLE "+role+" LOGIN; GRANT USAGE ON SCHEMA stone_index TO "+role+"; GRANT SELECT ON ALL TABLES IN SCHEMA stone_index TO "+role)
	t.Cleanup(func() { pgtest.Exec(t, address, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User(role)
	store, err := postgres.Open(t.Context(), at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if state, err := store.State(t.Context()); err != nil || state.Documents != 0 {
		t.Errorf("%+v, %v", state, err)
	}
}
