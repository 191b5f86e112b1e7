package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/pgtest"
)

// However frequent its words are, a question ranks few pieces: among them all that have its rare words, and some that have its
// frequent words together. If all its words are rare, the ranking is the one of all pieces.
func TestWords(t *testing.T) {
	const pieces, most, few = 3000, 10, 100
	address := pgtest.Database(t)
	s, err := Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`SET search_path = stone_index; INSERT INTO documents (name, digest, meta) VALUES ('a', '', '{}')`); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // so that the path stays
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 4, 2000)
	has := make([]map[string]bool, pieces+1)
	number := map[string]int{}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= pieces; id++ {
		has[id] = map[string]bool{}
		var text strings.Builder
		for range 20 + r.IntN(40) {
			word := fmt.Sprintf("w%d", zipf.Uint64())
			if !has[id][word] {
				number[word]++
			}
			has[id][word] = true
			text.WriteString(word + " ")
		}
		if _, err := tx.Exec(`INSERT INTO pieces (document, digest, heading, text, first, last, page, words) VALUES (1, '', '', $1, 0, 0, 0, to_tsvector('english', $1))`, text.String()); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	rank := func(w words, text string, n int) (ids []int64) {
		query := strings.Replace(strings.ReplaceAll(w.query(), "%s", ""), "?", "$1", 1)
		rows, err := db.Query(strings.Replace(query, "?", "$2", 1), text, n)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id, new(float64)); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		return ids
	}
	for range 60 {
		var asked, rare []string
		for range 1 + r.IntN(5) {
			if word := fmt.Sprintf("w%d", zipf.Uint64()); !slices.Contains(asked, word) {
				asked = append(asked, word)
			}
		}
		sum := 0
		for _, word := range slices.SortedFunc(slices.Values(asked), func(a, b string) int { return number[a] - number[b] }) {
			if sum += number[word]; sum <= few {
				rare = append(rare, word)
			}
		}
		texts, least, err := words{few}.choose(context.Background(), db, asked, most)
		if err != nil || least != 0 {
			t.Fatal(err, least)
		}
		for _, text := range texts {
			if n := len(rank(words{few}, text, pieces)); n > 2*few {
				t.Errorf("%v: %d pieces are ranked for %q", asked, n, text)
			}
			got, all := rank(words{few}, text, most), rank(words{pieces}, texts[len(texts)-1], most)
			for _, id := range all {
				if slices.ContainsFunc(rare, func(word string) bool { return has[id][word] }) && !slices.Contains(got, id) {
					t.Errorf("%v: %v leaves out %d of the best %v, which has a rare word", asked, got, id, all)
				}
			}
			if len(rare) == len(asked) && !slices.Equal(got, all) || len(got) < len(all) {
				t.Errorf("%v: got %v, want %v", asked, got, all)
			}
		}
		if len(rare) > 0 {
			continue
		}
		together := func(id int64) bool {
			return !slices.ContainsFunc(asked, func(word string) bool { return !has[id][word] })
		}
		n := 0
		for id := range int64(pieces) {
			if together(id + 1) {
				n++
			}
		}
		if first := rank(words{few}, texts[0], most); n >= most && (len(first) != most || !together(first[most-1])) {
			t.Errorf("%v: %d pieces have all words, and the ranking is %v", asked, n, first)
		}
	}
}
