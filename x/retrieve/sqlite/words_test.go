package sqlite

import (
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// The ranking by few pieces is the ranking by all, but for words of more than half of the pieces.
func TestWords(t *testing.T) {
	const pieces, most = 3000, 10
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "words.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range schema {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 4, 2000)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for range pieces {
		var text strings.Builder
		for range 20 + r.IntN(60) {
			fmt.Fprintf(&text, "w%d ", zipf.Uint64())
		}
		if _, err := tx.Exec(`INSERT INTO pieces (document, digest, heading, text, first, last, page) VALUES (1, '', ?, ?, 0, 0, 0)`, fmt.Sprintf("w%d", zipf.Uint64()), text.String()); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	type hit struct {
		id    int64
		score float64
	}
	ranked := 0
	rank := func(text string) (all []hit) {
		rows, err := db.Query(strings.Replace(query, "%s", "", 1), text, most)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var h hit
			if err := rows.Scan(&h.id, &h.score); err != nil {
				t.Fatal(err)
			}
			all = append(all, h)
		}
		var n int
		if err := db.QueryRow(`SELECT count(*) FROM words WHERE words MATCH ?`, text).Scan(&n); err != nil || rows.Err() != nil {
			t.Fatal(err, rows.Err())
		}
		ranked += n
		return all
	}
	fewer, whole, first := 0, 0, 0
	for range 300 {
		var asked []string
		for range 1 + r.IntN(6) {
			asked = append(asked, fmt.Sprintf("w%d", zipf.Uint64()))
		}
		want := rank(anyOf(asked))
		whole, ranked = whole+ranked, 0
		texts, least, err := words{few: 200}.choose(t.Context(), db, asked, most)
		if err != nil {
			t.Fatal(err)
		}
		var got []hit
		for i, text := range texts {
			if got = rank(text); i < len(texts)-1 && len(got) == most && got[most-1].score >= least {
				first++
				break
			}
		}
		fewer, ranked = fewer+ranked, 0
		scale := 1.0
		if len(got) > 0 && got[0].score > 1.5*want[0].score {
			scale = 2
		}
		for i, h := range want {
			if h.score < 1e-4 { // of common words
				break
			}
			if i >= len(got) || math.Abs(got[i].score/scale-h.score) > 1e-4 {
				t.Fatalf("%v: number %d is %+v, want %+v; %+v", asked, i, got[min(i, len(got)-1)], h, texts)
			}
		}
	}
	t.Logf("ranked %d pieces instead of %d, with the chosen ones for %d of 300 questions", fewer, whole, first)
	if 2*fewer > whole {
		t.Errorf("ranked %d pieces, and %d without choosing", fewer, whole)
	}
}
