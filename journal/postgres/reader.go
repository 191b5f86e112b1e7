package postgres

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/stonelayer/stone/journal/internal/log"
)

// reader is a [log.Reader] that reads with connections of the pool, or within a transaction.
type reader struct {
	source interface {
		// query executes a statement and reads its rows. It calls reset before the first row, and again each time it repeats the
		// statement.
		query(ctx context.Context, s statement, reset func()) error
	}
}

// rows returns the rows of a query, decoded by scan. It reads all rows before it returns, so a slow caller does not keep a
// connection or a transaction.
func rows[T any](ctx context.Context, r reader, scan func([][]byte) T, text string, args ...any) (found []T, err error) {
	each := func(values [][]byte) { found = append(found, scan(values)) }
	err = r.source.query(ctx, statement{text, args, each}, func() { found = found[:0] })
	return found, err
}

// often contains the frequent statements of readers.
var often = map[string]bool{byID: true, byPaths: true, byPrefix: true}

// Limits on a page of records.
const (
	mostRows  = 8192
	mostBytes = 8 << 20 // total size of contents in bytes; the last row may exceed it
)

const runColumns = "run, id, owner, beat, lease, outside, rows, state, tail, tip, pipeline, started, ended, seal, info, outcome"

func scanRun(v [][]byte) *log.Run {
	r := &log.Run{
		Row: integer(v[0]), ID: string(v[1]), Owner: string(v[2]), Beat: integer(v[3]), Lease: integer(v[4]), Outer: string(v[5]),
		Rows: integer(v[6]), State: string(v[7]), Tail: integer(v[8]), Tip: integer(v[9]),
		Pipeline: string(v[10]), Started: integer(v[11]), Ended: integer(v[12]),
		Seal: clone(v[13]), Info: clone(v[14]), Outcome: clone(v[15]),
	}
	if len(v) > 16 {
		r.Shape = clone(v[16])
	}
	return r
}

// clone copies a value. It returns nil for NULL.
func clone(value []byte) []byte {
	if value == nil {
		return nil
	}
	return append([]byte{}, value...)
}

// Run implements [log.Reader].
func (r reader) Run(ctx context.Context, id string) (*log.Run, error) {
	return r.run(ctx, id, "")
}

const byID = "SELECT " + runColumns + ", shape FROM stone.runs WHERE id = $1"

func (r reader) run(ctx context.Context, id, lock string) (*log.Run, error) {
	found, err := rows(ctx, r, scanRun, byID+lock, id)
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
		page, err := rows(ctx, r, scanListed, text, args...)
		bytes := 0
		for _, run := range page {
			bytes += len(run.Info) + len(run.Outcome)
		}
		return page, len(page) == limit || bytes >= mostBytes, err
	})
}

// selectingRuns returns the query for a page of selected runs, and the query's arguments.
func selectingRuns(s log.RunSelection, limit int) (text string, args []any) {
	keys, args := s.Keys("stone.", limit)
	return fmt.Sprintf(`SELECT %s, %s FROM (
		SELECT *, sum(size) OVER (ORDER BY run DESC ROWS UNBOUNDED PRECEDING) - size AS before
		FROM (SELECT *, coalesce(octet_length(info), 0) + coalesce(octet_length(outcome), 0) AS size FROM stone.runs WHERE run IN (%s)) listed
	) r WHERE before < %d ORDER BY run DESC`, runColumns, log.Asks("stone."), keys, mostBytes), args
}

func scanListed(v [][]byte) *log.Run {
	r := scanRun(v[:len(v)-1])
	r.Asks = integer(v[len(v)-1]) > 0
	return r
}

func textsOf(list []string) texts {
	out := make(texts, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// lastRune is the highest Unicode code point: every text that begins with a prefix sorts before prefix+lastRune.
const lastRune = "\U0010FFFF"

// CountRuns implements [log.Reader].
func (r reader) CountRuns(ctx context.Context, s log.RunSelection) ([]log.RunCount, error) {
	text, args := s.CountKeys("stone.")
	return rows(ctx, r, func(v [][]byte) log.RunCount {
		return log.RunCount{Pipeline: string(v[0]), State: string(v[1]), Held: integer(v[2]) > 0, Owner: string(v[3]), Outer: string(v[4]), Asks: integer(v[5]) > 0, Runs: integer(v[6])}
	}, text, args...)
}

// Named implements [log.Reader].
func (r reader) Named(ctx context.Context, prefix string, limit int) ([]*log.Run, error) {
	return rows(ctx, r, scanRun, "SELECT "+runColumns+", shape FROM stone.runs r WHERE id BETWEEN $1 AND $2 AND "+log.Visible("stone.")+" ORDER BY id LIMIT $3",
		prefix, prefix+lastRune, int64(limit))
}

const rowColumns = "run, seq, digest, reuse, node, parents, path, head, seal, content"

// headColumns are the columns without the content of results and nodes, which may be long.
const headColumns = "run, seq, digest, reuse, node, parents, path, head, seal, CASE WHEN digest IS NULL AND node IS NULL THEN content END"

// scanRow copies all values of a row together, because a resumed run reads all its rows.
func scanRow(v [][]byte) *log.Row {
	size := 0
	for _, value := range v[2:] {
		size += len(value)
	}
	all := make([]byte, 0, size)
	take := func(value []byte) []byte {
		if value == nil {
			return nil
		}
		from := len(all)
		all = append(all, value...)
		return all[from:len(all):len(all)]
	}
	return &log.Row{
		Run: integer(v[0]), Seq: integer(v[1]),
		Digest: take(v[2]), Reuse: take(v[3]), Node: take(v[4]), Parents: take(v[5]), Path: string(v[6]), Head: take(v[7]), Seal: take(v[8]), Content: take(v[9]),
	}
}

// Rows implements [log.Reader].
func (r reader) Rows(ctx context.Context, run int64, s log.Selection) iter.Seq2[*log.Row, error] {
	return log.Pages(mostRows, s.Most, func(last **log.Row, limit int) ([]*log.Row, bool, error) {
		if last != nil {
			s.After = (*last).Seq
			if s.Prefix != "" {
				s.Path = (*last).Path
			}
		}
		text, args := selecting(run, s, int64(limit))
		page, err := rows(ctx, r, scanRow, text, args...)
		bytes := 0
		for _, row := range page {
			bytes += len(row.Content)
		}
		return page, len(page) == limit || !s.Heads && bytes >= mostBytes, err
	})
}

// byPaths looks up each path separately. With a condition such as path = ANY ($3), and if its statistics are older than the run,
// the server would use the index on run and seq, and would read the whole run. The order of this query can be served only by the
// index on run, path and seq.
var byPaths = fmt.Sprintf(`SELECT %s FROM (
	SELECT found.*, sum(size) OVER (ORDER BY found.seq ROWS UNBOUNDED PRECEDING) - size AS before
	FROM unnest($3::text[]) AS wanted (path) CROSS JOIN LATERAL (
		SELECT *, coalesce(octet_length(content), 0) AS size FROM stone.records
		WHERE (run, path, seq) >= ((SELECT $1::bigint), wanted.path, 0) AND path IS NOT NULL ORDER BY run, path, seq LIMIT 1
	) found WHERE found.run = $1 AND found.path = wanted.path AND found.seq > $2
) page WHERE before < %d ORDER BY seq LIMIT $4`, rowColumns, mostBytes)

// selecting returns the query for a page of selected records, and the query's arguments.
func selecting(run int64, s log.Selection, limit int64) (text string, args []any) {
	if len(s.Paths) > 0 {
		return byPaths, []any{run, s.After, textsOf(s.Paths), limit}
	}
	if s.Prefix != "" {
		return byPrefix, []any{run, cmp.Or(s.Path, s.Prefix), s.After, s.Prefix + lastRune, limit}
	}
	text, args = "run = $1 AND seq > $2", []any{run, s.After}
	and := func(condition string, more ...any) {
		places := make([]any, len(more))
		for i := range more {
			places[i] = len(args) + i + 1
		}
		text, args = text+" AND "+fmt.Sprintf(condition, places...), append(args, more...)
	}
	if s.Aside {
		and("seq >= $%d", int64(log.Aside))
	} else {
		and("seq < $%d", int64(log.Aside))
	}
	if s.Seq > 0 {
		and("seq = $%d", s.Seq)
	}
	if len(s.Seqs) > 0 {
		and("seq = ANY ($%d)", s.Seqs)
	}
	if s.Path != "" {
		and("path = $%d", s.Path)
	}
	if s.Node != nil {
		and("node BETWEEN $%d AND $%d", s.Node[0][:], s.Node[1][:])
	}
	if s.Under != "" {
		and("(digest IS NULL OR path BETWEEN $%d AND $%d)", s.Under, s.Under+lastRune)
	}
	if s.Nodes {
		and("node IS NOT NULL")
	}
	if s.Steps {
		and("(digest IS NOT NULL OR node IS NULL)")
	}
	columns, bound := headColumns, ""
	if !s.Heads {
		// The server can determine the size of content without reading it.
		const size = "coalesce(octet_length(content), 0)"
		columns, bound = rowColumns, fmt.Sprintf(` AND seq <= (SELECT max(seq) FROM (
			SELECT seq, sum(%[1]s) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - %[1]s AS before FROM stone.records WHERE %[2]s ORDER BY seq LIMIT %[3]d
		) page WHERE before < %[4]d)`, size, text, limit, mostBytes)
	}
	return fmt.Sprintf("SELECT %s FROM stone.records WHERE %s%s ORDER BY seq LIMIT %d", columns, text, bound, limit), args
}

// byPrefix reads a range of paths, beginning with a path and number. As with byPaths, its order can be served only by the index on
// run, path and seq.
var byPrefix = fmt.Sprintf(`SELECT %s FROM (
	SELECT *, sum(size) OVER (ORDER BY path, seq ROWS UNBOUNDED PRECEDING) - size AS before FROM (
		SELECT *, coalesce(octet_length(content), 0) AS size FROM stone.records
		WHERE (run, path, seq) > ((SELECT $1::bigint), $2, $3) AND (run, path) <= ((SELECT $1::bigint), $4) AND path IS NOT NULL
		ORDER BY run, path, seq LIMIT $5
	) found
) page WHERE before < %d ORDER BY path, seq`, rowColumns, mostBytes)

// Reusable implements [log.Reader].
func (r reader) Reusable(ctx context.Context, reuse []byte, from, but int64) iter.Seq2[*log.Row, error] {
	const few = 4 // the first row is nearly always sufficient
	return log.Pages(few, 0, func(last **log.Row, limit int) ([]*log.Row, bool, error) {
		var run, seq int64
		if last != nil {
			run, seq = (*last).Run, (*last).Seq
		}
		page, err := rows(ctx, r, scanRow, "SELECT "+rowColumns+` FROM stone.records
			WHERE reuse = $1 AND ($2 = 0 OR run = $2) AND run <> $3 AND (run, seq) > ($4, $5) ORDER BY run, seq LIMIT $6`,
			reuse, from, but, run, seq, int64(limit))
		return page, len(page) == limit, err
	})
}

// Questions implements [log.Reader].
func (r reader) Questions(ctx context.Context, s log.QuestionSelection) iter.Seq2[*log.Question, error] {
	return log.Pages(mostRows, s.Most, func(last **log.Question, limit int) ([]*log.Question, bool, error) {
		if last != nil {
			s.After = (*last).Seq
		}
		where, args := s.Where("stone.")
		page, err := rows(ctx, r, scanQuestion, fmt.Sprintf(`SELECT seq, run, id, path, open, question, seal FROM (
			SELECT *, sum(octet_length(question)) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - octet_length(question) AS before FROM (
				SELECT %s FROM stone.questions q JOIN stone.runs r ON r.run = q.run WHERE %s ORDER BY q.seq LIMIT %d) found
			) page WHERE before < %d ORDER BY seq`, log.QuestionColumns, where, limit, mostBytes), args...)
		bytes := 0
		for _, q := range page {
			bytes += len(q.Text)
		}
		return page, len(page) == limit || bytes >= mostBytes, err
	})
}

// CountQuestions implements [log.Reader].
func (r reader) CountQuestions(ctx context.Context, s log.QuestionSelection) (int64, error) {
	where, args := s.Where("stone.")
	found, err := rows(ctx, r, func(v [][]byte) int64 { return integer(v[0]) }, "SELECT count(*) FROM stone.questions q WHERE "+where, args...)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

func scanQuestion(v [][]byte) *log.Question {
	return &log.Question{Seq: integer(v[0]), Run: integer(v[1]), Of: string(v[2]), Path: string(v[3]), Open: v[4][0] == 1, Text: clone(v[5]), Seal: clone(v[6])}
}

// Block implements [log.Reader].
func (r reader) Block(ctx context.Context, run int64, parent, slot string) (*log.Block, error) {
	found, err := rows(ctx, r, scanBlock, "SELECT parent, slot, counts, seal, data FROM stone.blocks WHERE run = $1 AND parent = $2 AND slot = $3", run, parent, slot)
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
	return rows(ctx, r, scanBlock, "SELECT "+columns+" FROM stone.blocks WHERE run = $1 AND parent = $2", run, parent)
}

func scanBlock(v [][]byte) *log.Block {
	b := &log.Block{Parent: string(v[0]), Slot: string(v[1]), Counts: clone(v[2]), Seal: clone(v[3])}
	if len(v) > 4 {
		b.Data = clone(v[4])
	}
	return b
}

// Verify implements [log.Verifier]. It does not check pages and indexes; PostgreSQL's pg_amcheck does that.
func (f *database) Verify(ctx context.Context, found func(string)) error {
	for _, table := range []string{"records", "questions", "blocks", "labels", "batches", "receivers", "outbox"} {
		lost, err := rows(ctx, f.reader, func(v [][]byte) int64 { return integer(v[0]) },
			"SELECT count(*) FROM stone."+table+" t WHERE NOT EXISTS (SELECT 1 FROM stone.runs r WHERE r.run = t.run)")
		if err != nil {
			return err
		}
		if n := lost[0]; n > 0 {
			found(fmt.Sprintf("has %d rows in the table %s of runs that it does not have", n, table))
		}
	}
	return nil
}
