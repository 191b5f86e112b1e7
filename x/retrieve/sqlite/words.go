package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
)

// words writes expressions of FTS5. Ranking a piece takes a microsecond, and common words are in most pieces. So the rare
// words of a question select the pieces, and all its words rank them. Pieces with common words alone are ranked only if they
// could be among the best.
type words struct{ few int } // the number of pieces from which this pays off

// choose implements retrieve.Dialect.
func (w words) choose(ctx context.Context, db *sql.DB, all []string, most int) (texts []string, least float64, err error) {
	var pieces int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM pieces`).Scan(&pieces); err != nil || pieces <= w.few {
		return []string{anyOf(all)}, 0, err
	}
	type counted struct {
		word   string
		pieces int // that have it, at most one more than half
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
	// A word of more than half of all pieces weighs a millionth. It counts only in questions of such words.
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
		others = append(others, c.word, c.word) // twice, since the chosen ones count twice
		// BM25 of FTS5 has k1 = 1.2: a piece gets less than 2.2 times the weight of the word.
		least += 2 * 2.2 * math.Log((float64(pieces-c.pieces)+0.5)/(float64(c.pieces)+0.5))
	}
	if len(others) > 0 {
		texts = append(texts, "("+anyOf(chosen)+") AND ("+anyOf(append(chosen, others...))+")")
	}
	return append(texts, anyOf(whole)), least, nil
}

func anyOf(all []string) string { return `"` + strings.Join(all, `" OR "`) + `"` }
