package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// words limits the number of pieces that are ranked for a question. Ranking a piece takes 7 µs, and frequent words occur in most
// pieces. All pieces with a rare word are ranked. Of the pieces with only frequent words, those that contain the most of them are
// ranked, up to a maximum.
type words struct{ few int } // maximum number of pieces with rare words, and of pieces with only frequent ones

var fewWords = words{few: 5000}

// mostFrequent is the maximum number of frequent words searched for together.
const mostFrequent = 8

// query returns a query that ranks by ts_rank_cd. A word in a heading counts 2.5 times. The text has four parts: rare words,
// frequent words, all words, and the operator between frequent words. Words contain no operators, so the operators between words
// can be replaced.
func (w words) query() string {
	of := func(part int, operator string) string {
		return fmt.Sprintf(`replace(plainto_tsquery('english', split_part(t, '/', %d))::text, '&', %s)::tsquery`, part, operator)
	}
	some := func(which string) string {
		return fmt.Sprintf(`(SELECT p.id FROM pieces p, question WHERE p.words @@ %s %%s LIMIT %d)`, which, w.few)
	}
	return `WITH question AS MATERIALIZED (SELECT ` + of(1, `'|'`) + ` AS rare, ` + of(2, `split_part(t, '/', 4)`) + ` AS frequent, ` + of(3, `'|'`) + ` AS whole FROM (SELECT ?::text AS t) given)
		SELECT p.id, ts_rank_cd(p.words, whole) FROM pieces p, question WHERE p.id IN (` + some("rare") + ` UNION ALL ` + some("frequent") + `) ORDER BY 2 DESC, 1 LIMIT ?`
}

// choose implements retrieve.Dialect.
func (w words) choose(ctx context.Context, db *sql.DB, all []string, n int) (texts []string, least float64, err error) {
	each, err := count(ctx, db, all, w.few+1)
	if err != nil {
		return nil, 0, err
	}
	pieces := map[string]int{}
	for i, word := range all {
		pieces[word] = each[i]
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(pieces[a], pieces[b]) })
	rare := 0 // number of rare words
	for sum := 0; rare < len(sorted) && sum+pieces[sorted[rare]] <= w.few; rare++ {
		sum += pieces[sorted[rare]]
	}
	text := func(frequent []string, operator string) string {
		return strings.Join(sorted[:rare], " ") + "/" + strings.Join(frequent, " ") + "/" + strings.Join(all, " ") + "/" + operator
	}
	frequent := sorted[rare:]
	if len(frequent) == 0 {
		return []string{text(nil, "|")}, 0, nil
	}
	together := frequent[:1:1]
	for _, word := range frequent[1:min(len(frequent), mostFrequent)] {
		more := append(together, word)
		found, err := count(ctx, db, []string{strings.Join(more, " ")}, n)
		if err != nil {
			return nil, 0, err
		}
		if found[0] == n {
			together = more
		}
	}
	return []string{text(together, "&"), text(frequent, "|")}, 0, nil
}

// count returns, for each text, the number of pieces that contain all of its words, at most n.
func count(ctx context.Context, db *sql.DB, texts []string, n int) (found []int, err error) {
	var each []string
	var args, to []any
	found = make([]int, len(texts))
	for i, text := range texts {
		each = append(each, fmt.Sprintf(`(SELECT count(*) FROM (SELECT 1 FROM pieces WHERE words @@ plainto_tsquery('english', $%d) LIMIT %d) found)`, i+1, n))
		args, to = append(args, text), append(to, &found[i])
	}
	return found, db.QueryRowContext(ctx, "SELECT "+strings.Join(each, ", "), args...).Scan(to...)
}
