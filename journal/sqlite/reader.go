package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strings"

	"github.com/stonelayer/stone/journal/internal/log"
)

// reader is a [log.Reader] that uses a pool of connections, or the connection of a transaction.
type reader struct{ sql *statements }

// Limits on a page of records.
const (
	mostRows  = 512
	mostBytes = 1 << 20 // total size of heads and contents in bytes; the last row may exceed it
)

// query returns the rows of a query, decoded by scan, up to the first row for which enough returns true. The result more reports
// whether rows may follow. All rows are read before query returns, because there are only a few connections and the caller may
// need one itself.
func query[T any](ctx context.Context, r reader, scan func(*sql.Rows) (T, error), enough func(T) bool, text string, args ...any) (found []T, more bool, err error) {
	rows, err := r.sql.query(ctx, text, args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, false, err
		}
		if found = append(found, one); enough(one) {
			return found, true, nil
		}
	}
	return found, false, rows.Err()
}

// all returns all rows of a query.
func all[T any](ctx context.Context, r reader, scan func(*sql.Rows) (T, error), text string, args ...any) ([]T, error) {
	found, _, err := query(ctx, r, scan, func(T) bool { return false }, text, args...)
	return found, err
}

// atMost returns a function that reports whether a row fills the page.
func atMost[T any](rows int, size func(T) int) func(T) bool {
	bytes := 0
	return func(row T) bool {
		rows, bytes = rows-1, bytes+size(row)
		return rows <= 0 || bytes >= mostBytes
	}
}

func sizeOfRow(r *log.Row) int { return len(r.Head) + len(r.Content) }

func sizeOfRun(r *log.Run) int { return len(r.Info) + len(r.Outcome) }

const runColumns = "run, id, owner, beat, lease, outside, rows, state, tail, tip, pipeline, started, ended, seal, info, outcome"

func scanRun(rows *sql.Rows) (*log.Run, error) {
	r := new(log.Run)
	into := []any{&r.Row, &r.ID, &r.Owner, &r.Beat, &r.Lease, &r.Outer, &r.Rows, &r.State, &r.Tail, &r.Tip, &r.Pipeline, &r.Started, &r.Ended, &r.Seal, &r.Info, &r.Outcome, &r.Shape, &r.Asks}
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	return r, rows.Scan(into[:len(columns)]...)
}

// Run implements [log.Reader].
func (r reader) Run(ctx context.Context, id string) (*log.Run, error) {
	found, err := all(ctx, r, scanRun, "SELECT "+runColumns+", shape FROM runs WHERE id = ?", id)
	if len(found) == 0 {
		return nil, err
	}
	return found[0], err
}

// Runs implements [log.Reader].
func (r reader) Runs(ctx context.Context, s log.RunSelection) iter.Seq2[*log.Run, error] {
	return log.Pages(mostRows, s.Most, func(last **log.Run, limit int) ([]*log.Run, bool, error) {
		if last != nil {
			s.Before = (*last).Row
		}
		text, args := selectingRuns(s, limit)
		return query(ctx, r, scanRun, atMost(limit, sizeOfRun), text, args...)
	})
}

func selectingRuns(s log.RunSelection, limit int) (text string, args []any) {
	keys, args := s.Keys("", limit)
	return "SELECT " + runColumns + ", NULL, " + log.Asks("") + " FROM runs r WHERE run IN (" + inSQLite(keys) + ") ORDER BY run DESC", args
}

// CountRuns implements [log.Reader].
func (r reader) CountRuns(ctx context.Context, s log.RunSelection) ([]log.RunCount, error) {
	text, args := s.CountKeys("")
	return all(ctx, r, func(rows *sql.Rows) (c log.RunCount, err error) {
		return c, rows.Scan(&c.Pipeline, &c.State, &c.Held, &c.Owner, &c.Outer, &c.Asks, &c.Runs)
	}, inSQLite(text), args...)
}

// inSQLite translates a query written for PostgreSQL to SQLite.
func inSQLite(text string) string {
	return strings.NewReplacer("$", "?", "strpos(", "instr(").Replace(text)
}

// Named implements [log.Reader].
func (r reader) Named(ctx context.Context, prefix string, limit int) ([]*log.Run, error) {
	end := prefix + string(rune(0x10FFFF)) // the highest Unicode code point
	// The limit is an expression because SQLite would prepare the statement again each time if it were a bare parameter.
	return all(ctx, r, scanRun, "SELECT "+runColumns+", shape FROM runs r WHERE id BETWEEN ? AND ? AND "+log.Visible("")+" ORDER BY id LIMIT ? + 0", prefix, end, limit)
}

const rowColumns = "seq, digest, reuse, node, parents, path, head, seal, content"

// headColumns are the columns without the content of results and nodes, which may be long.
const headColumns = "seq, digest, reuse, node, parents, path, head, seal, CASE WHEN digest IS NULL AND node IS NULL THEN content END"

// Rows implements [log.Reader].
func (r reader) Rows(ctx context.Context, run int64, s log.Selection) iter.Seq2[*log.Row, error] {
	scan := new(scanner).scan
	return log.Pages(mostRows, s.Most, func(last **log.Row, limit int) ([]*log.Row, bool, error) {
		if last != nil {
			s.After = (*last).Seq
		}
		text, args := selecting(run, s)
		return query(ctx, r, scan, atMost(limit, sizeOfRow), text, args...)
	})
}

// selecting returns the query for a selection, and its arguments.
func selecting(run int64, s log.Selection) (text string, args []any) {
	columns := rowColumns
	if s.Heads {
		columns = headColumns
	}
	text = "SELECT " + columns + " FROM records WHERE "
	and := func(condition string, more ...any) {
		if len(args) > 0 {
			text += " AND "
		}
		text, args = text+condition, append(args, more...)
	}
	switch {
	case s.Seq > 0:
		and("seq = ?", run<<32|s.Seq)
	case len(s.Seqs) > 0:
		numbers := make([]any, len(s.Seqs))
		for i, seq := range s.Seqs {
			numbers[i] = run<<32 | seq
		}
		and("seq IN (?"+strings.Repeat(", ?", len(numbers)-1)+")", numbers...)
	case s.Path != "":
		and("seq >> 32 = ? AND path = ?", run, s.Path)
	case len(s.Paths) > 0:
		paths := []any{run}
		for _, path := range s.Paths {
			paths = append(paths, path)
		}
		and("seq >> 32 = ? AND path IN (?"+strings.Repeat(", ?", len(s.Paths)-1)+")", paths...)
	case s.Prefix != "":
		and("seq >> 32 = ? AND path BETWEEN ? AND ?", run, s.Prefix, s.Prefix+string(rune(0x10FFFF)))
	case s.Node != nil:
		return selectNode, []any{run<<32 | (s.After + 1), run<<32 | (log.Aside - 1), s.Node[0][:], s.Node[1][:]}
	}
	if s.Seq == 0 && s.Path == "" && s.Prefix == "" && len(s.Seqs)+len(s.Paths) == 0 {
		first, last := s.After+1, int64(log.Aside-1)
		if s.Aside {
			first, last = max(first, log.Aside), 2*log.Aside-1
		}
		and("seq BETWEEN ? AND ?", run<<32|first, run<<32|last)
	} else if s.After > 0 {
		and("seq > ?", run<<32|s.After)
	}
	if s.Under != "" {
		and("(digest IS NULL OR path BETWEEN ? AND ?)", s.Under, s.Under+string(rune(0x10FFFF)))
	}
	if s.Nodes {
		text += " AND node IS NOT NULL"
	}
	if s.Steps {
		text += " AND (digest IS NOT NULL OR node IS NULL)"
	}
	return text + " ORDER BY seq", args
}

// selectNode searches each group of 1,024 rows of a run separately, because the index of nodes begins with the group.
const selectNode = `WITH RECURSIVE groups(g, last) AS (
		SELECT ?1 >> 10, max(seq) >> 10 FROM records WHERE seq BETWEEN ?1 AND ?2
		UNION ALL SELECT g + 1, last FROM groups WHERE g < last)
	SELECT ` + rowColumns + ` FROM groups CROSS JOIN records
	WHERE seq >> 10 = g AND seq >= ?1 AND node BETWEEN ?3 AND ?4 ORDER BY seq`

// Reusable implements [log.Reader].
func (r reader) Reusable(ctx context.Context, reuse []byte, from, but int64) iter.Seq2[*log.Row, error] {
	const few = 4 // the first row is nearly always sufficient
	scan := new(scanner).scan
	return log.Pages(few, 0, func(last **log.Row, limit int) ([]*log.Row, bool, error) {
		after := int64(0)
		if last != nil {
			after = (*last).Run<<32 | (*last).Seq
		}
		return query(ctx, r, scan, atMost(limit, sizeOfRow), "SELECT "+rowColumns+` FROM records
			WHERE reuse = ?1 AND (?2 = 0 OR seq >> 32 = ?2) AND seq >> 32 <> ?3 AND seq > ?4 ORDER BY seq`, reuse, from, but, after)
	})
}

// Questions implements [log.Reader]. It first finds the numbers of the questions, so that SQLite does not sort their texts.
func (r reader) Questions(ctx context.Context, s log.QuestionSelection) iter.Seq2[*log.Question, error] {
	return log.Pages(mostRows, s.Most, func(last **log.Question, limit int) ([]*log.Question, bool, error) {
		if last != nil {
			s.After = (*last).Seq
		}
		where, args := s.Where("")
		text := fmt.Sprintf(`SELECT %s FROM questions q CROSS JOIN runs r WHERE r.run = q.run
			AND q.seq IN (SELECT q.seq FROM questions q WHERE %s ORDER BY q.seq LIMIT %d) ORDER BY q.seq`, log.QuestionColumns, where, limit)
		return query(ctx, r, scanQuestion, atMost(limit, func(q *log.Question) int { return len(q.Text) }), inSQLite(text), args...)
	})
}

// CountQuestions implements [log.Reader].
func (r reader) CountQuestions(ctx context.Context, s log.QuestionSelection) (int64, error) {
	where, args := s.Where("")
	found, err := all(ctx, r, func(rows *sql.Rows) (n int64, err error) { return n, rows.Scan(&n) }, inSQLite("SELECT count(*) FROM questions q WHERE "+where), args...)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

func scanQuestion(rows *sql.Rows) (*log.Question, error) {
	q := new(log.Question)
	return q, rows.Scan(&q.Seq, &q.Run, &q.Of, &q.Path, &q.Open, &q.Text, &q.Seal)
}

// Block implements [log.Reader].
func (r reader) Block(ctx context.Context, run int64, parent, slot string) (*log.Block, error) {
	found, err := all(ctx, r, scanBlock, "SELECT parent, slot, counts, seal, data FROM blocks WHERE run = ? AND parent = ? AND slot = ?", run, parent, slot)
	if len(found) == 0 {
		return nil, err
	}
	return found[0], err
}

// Blocks implements [log.Reader].
func (r reader) Blocks(ctx context.Context, run int64, parent string, whole bool) ([]*log.Block, error) {
	columns := "parent, slot, counts, seal"
	if whole {
		columns += ", data"
	}
	return all(ctx, r, scanBlock, "SELECT "+columns+" FROM blocks WHERE run = ? AND parent = ?", run, parent)
}

func scanBlock(rows *sql.Rows) (*log.Block, error) {
	b := new(log.Block)
	into := []any{&b.Parent, &b.Slot, &b.Counts, &b.Seal, &b.Data}
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	return b, rows.Scan(into[:len(columns)]...)
}

// scanner reads records. It copies the driver's data once for a whole row rather than for each column, because a resumed run reads
// all its rows.
type scanner struct {
	seq     int64
	columns [8]column
	into    []any
}

// column is a string or bytes in the driver's memory. It is valid until the next row is read.
type column struct {
	text  string
	bytes []byte
	null  bool
}

// Scan implements sql.Scanner.
func (c *column) Scan(value any) error {
	*c = column{null: value == nil}
	switch value := value.(type) {
	case nil:
	case []byte:
		c.bytes = value
	case string:
		c.text = value
	default:
		return fmt.Errorf("a column is of type %T: want a text or bytes", value)
	}
	return nil
}

func (s *scanner) scan(rows *sql.Rows) (*log.Row, error) {
	if s.into == nil {
		s.into = append(s.into, &s.seq)
		for i := range s.columns {
			s.into = append(s.into, &s.columns[i])
		}
	}
	if err := rows.Scan(s.into...); err != nil {
		return nil, err
	}
	size := 0
	for _, c := range s.columns {
		size += len(c.text) + len(c.bytes)
	}
	all := make([]byte, 0, size)
	take := func(i int) []byte {
		c := s.columns[i]
		if c.null {
			return nil
		}
		from := len(all)
		all = append(append(all, c.text...), c.bytes...)
		return all[from:len(all):len(all)]
	}
	return &log.Row{
		Run: s.seq >> 32, Seq: s.seq & (1<<32 - 1),
		Digest: take(0), Reuse: take(1), Node: take(2), Parents: take(3), Path: string(take(4)), Head: take(5), Seal: take(6), Content: take(7),
	}, nil
}
