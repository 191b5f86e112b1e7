package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
)

// words returns search expressions for FTS5. Ranking a piece takes a microsecond, and common words occur in most pieces. So
// pieces are selected by the rare words of a question, and ranked by all of its words. Pieces that contain only common words are
// ranked only if they could be among the best.
type words struct{ few int } // minimum number of pieces for which this is faster

// choose implements retrieve.Dialect.
func (w words) choose(ctx context.Context, db *sql.DB, all []string, most int) (texts []string, least float64, err error) {
	var pieces int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM pieces`).Scan(&pieces); err != nil || pieces <= w.few {
		return []string{anyOf(all)}, 0, err
	}
	type counted struct {
		word   string
		pieces int // number of pieces that contain the word, counted only up to one more than half
	}
	var list []counted
	for _, word := range all {
		c := counted{word: word}
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)`, anyOf([]string{word}), pieces/2+1).Scan(&c.pieces)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b counted) int { return cmp.Compare(a.pieces, b.pieces) })
	// A word that occurs in more than half of all pieces has a millionth of the usual weight. It is used only if the question
	// consists of such words.
	n := slices.IndexFunc(list, func(c counted) bool { return c.pieces > pieces/2 })
	if n >= 0 {
		list = list[:max(n, 1)]
	}
	var whole, chosen, others []string
	selected := 0
	for _, c := range list {
		whole = append(whole, c.word)
		if selected < most || selected+c.pieces <= w.few {
			chosen, selected = append(chosen, c.word), selected+c.pieces
			continue
		}
		others = append(others, c.word, c.word) // twice, because the selecting words count twice
		// FTS5 uses BM25 with k1 = 1.2: a piece's score is less than 2.2 times the weight of the word.
		least += 2 * 2.2 * math.Log((float64(pieces-c.pieces)+0.5)/(float64(c.pieces)+0.5))
	}
	if len(others) > 0 {
		texts = append(texts, "("+anyOf(chosen)+") AND ("+anyOf(append(chosen, others...))+")")
	}
	return append(texts, anyOf(whole)), least, nil
}

func anyOf(all []string) string { return `"` + strings.Join(all, `" OR "`) + `"` }
