package postgres

import "github.com/stonelayer/stone/journal/internal/log"

// advance increments the beats of runs whose owners are unchanged. If another transaction is taking over a run, the statement
// waits for that transaction and then compares the owner again.
const advance = `UPDATE stone.runs r SET beat = r.beat + 1, rows = CASE WHEN b.rows < 0 THEN r.rows ELSE b.rows END
	FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) AS b (run, owner, rows, least)
	WHERE r.run = b.run AND r.owner = b.owner AND r.beat >= b.least RETURNING r.run, r.beat`

// Tests change these statements. Fence is like advance, but fails unless it can change all of the runs. Count is the first
// statement of each transaction. It fails unless the number in this process's row is the number of the last transaction. Mark
// changes that number, so that a transaction whose response was lost can no longer start.
var (
	fence = "WITH done AS (" + advance + ") SELECT run, beat FROM done UNION ALL SELECT 0, CASE WHEN count(*) = cardinality($1) THEN 0 ELSE stone.refuse('a run has another owner') END FROM done"
	count = "WITH done AS (UPDATE stone.writers SET commits = $2 WHERE writer = $1 AND commits = $3 RETURNING 1) SELECT CASE WHEN count(*) = 1 THEN 0 ELSE stone.refuse('an earlier commit of this process was lost') END FROM done"
	mark  = "UPDATE stone.writers SET commits = commits | 1 WHERE writer = $1 RETURNING commits"
)

// Advance implements [log.Tx].
func (t *tx) Advance(beats []*log.Beat) error {
	var runs, numbers []int64
	var owners texts
	byRun := map[int64]*log.Beat{}
	for _, b := range beats {
		runs, owners, numbers = append(runs, b.Run), append(owners, &b.Owner), append(numbers, b.Rows)
		byRun[b.Run] = b
	}
	type beat struct{ run, now int64 }
	found, err := rows(background, t.reader, func(v [][]byte) beat { return beat{integer(v[0]), integer(v[1])} }, advance, runs, owners, numbers, make([]int64, len(runs)))
	for _, b := range found {
		byRun[b.run].Now = b.now
		if r := t.byRow[b.run]; r != nil {
			if r.Beat = b.now; byRun[b.run].Rows >= 0 {
				r.Rows = byRun[b.run].Rows
			}
		}
	}
	return err
}

// Fence implements [log.Fencer].
func (t *tx) Fence(beats []*log.Beat) error {
	var runs, numbers, least []int64
	var owners texts
	byRun := map[int64]*log.Beat{}
	for _, b := range beats {
		runs, owners, numbers, least = append(runs, b.Run), append(owners, &b.Owner), append(numbers, b.Rows), append(least, b.Now)
		byRun[b.Run] = b
		if r := t.byRow[b.Run]; r != nil && b.Rows >= 0 {
			r.Rows = b.Rows
		}
	}
	t.fenced = true
	t.queue = append(t.queue, statement{fence, []any{runs, owners, numbers, least}, func(v [][]byte) {
		if b := byRun[integer(v[0])]; b != nil {
			b.Now = integer(v[1])
		}
	}})
	return nil
}

// Count implements [log.Tx].
func (t *tx) Count(beats []*log.Beat) error {
	var runs, numbers []int64
	for _, b := range beats {
		runs, numbers = append(runs, b.Run), append(numbers, b.Rows)
		if r := t.byRow[b.Run]; r != nil {
			r.Rows = b.Rows
		}
	}
	t.exec("UPDATE stone.runs r SET rows = b.rows FROM unnest($1::bigint[], $2::bigint[]) AS b (run, rows) WHERE r.run = b.run", runs, numbers)
	return nil
}
