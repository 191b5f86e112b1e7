package postgres_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/internal/storetest"
	"github.com/stonelayer/stone/x/retrieve/postgres"
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
	x := &retrieve.Index{Store: owner, Embedder: new(script.Embedder)}
	files := fstest.MapFS{"bees.md": {Data: []byte("Bees rest.\n")}, "foxes.md": {Data: []byte("Foxes run.\n")}}
	if _, err := stone.Produce(t.Context(), x.Pipeline("index", files), retrieve.Indexed, stone.Config{}); err != nil {
		t.Fatal(err)
	}
	role := "reader_" + strings.ToLower(rand.Text()[:8])
	pgtest.Exec(t, address, "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() { pgtest.Exec(t, address, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User(role)
	if _, err := retrieve.Open(t.Context(), at.String(), false); err == nil || !strings.Contains(err.Error(), "the role "+role+" may not read it: GRANT USAGE") {
		t.Errorf("without rights: %v", err)
	}
	pgtest.Exec(t, address, "GRANT USAGE ON SCHEMA stone_index TO "+role+"; GRANT SELECT ON ALL TABLES IN SCHEMA stone_index TO "+role)
	for _, make := range []bool{false, true} {
		store, err := retrieve.Open(t.Context(), at.String(), make)
		if err != nil {
			t.Fatal(err)
		}
		a, err := (&retrieve.Index{Store: store, Embedder: x.Embedder}).Search(t.Context(), retrieve.Query{Text: "foxes run", K: 1})
		if err != nil || len(a.Hits) != 1 || a.Hits[0].VectorRank != 1 || a.Hits[0].File != "foxes.md" {
			t.Errorf("%+v, %v", a, err)
		}
		store.Close()
	}
}

// BenchmarkWords searches with rare words, with frequent ones, and with both. STONE_PIECES=200000 makes a larger index.
func BenchmarkWords(b *testing.B) {
	pieces, err := strconv.Atoi(cmp.Or(os.Getenv("STONE_PIECES"), "10000"))
	if err != nil {
		b.Fatal(err)
	}
	address := pgtest.Database(b)
	store, err := postgres.Open(b.Context(), address)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	x := &retrieve.Index{Store: store}
	if _, err := stone.Produce(b.Context(), x.Pipeline("index", storetest.Library(pieces)), retrieve.Indexed, stone.Config{}); err != nil {
		b.Fatal(err)
	}
	pgtest.Exec(b, address, "ANALYZE")
	for _, text := range []string{"w4000 w9000", "w3 w150 w900 w4000", "w1 w2 w3", "w1 w2 w3 w4 w5 w6 w7 w8", "w0"} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				if _, err := x.Search(b.Context(), retrieve.Query{Text: text, Words: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// An index of a later version is refused before anything of it is changed.
func TestLaterFormat(t *testing.T) {
	address := pgtest.Database(t)
	store, err := postgres.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	pgtest.Exec(t, address, "UPDATE stone_index.about SET value = '2' WHERE name = 'format'; DROP TABLE stone_index.blocks")
	if _, err := postgres.Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), "it has format 2, and this program knows 1") {
		t.Errorf("opened with %v", err)
	}
}
