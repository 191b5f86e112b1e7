package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stonelayer/stone/journal/internal/log"
)

var background = context.Background()

// Update implements [log.Database].
func (d *database) Update(do func(log.Tx) error) error {
	if err := d.connect(); err != nil {
		return err
	}
	t := &tx{database: d, number: d.commits&^1 + 2, runs: map[string]*log.Run{}, byRow: map[int64]*log.Run{}}
	t.reader = reader{t}
	err := do(t)
	if err == nil && !t.started && len(t.queue) == 0 {
		return nil
	}
	committing := err == nil
	if committing {
		t.exec("COMMIT")
		if err = t.send(); err == nil {
			d.lost, d.commits = 0, t.number
			d.news.changed()
			return nil
		}
	}
	if t.started && d.writer.IsClosed() {
		d.lost++
		if committing { // the server may have received the commit
			return &log.UnknownError{Err: err, Committed: func() (bool, error) { return d.committed(t.number) }}
		}
	} else if t.started {
		t.queue, t.size = nil, 0
		t.exec("ROLLBACK")
		if _ = t.send(); d.writer.IsClosed() { // even without this, the server rolls back when the connection is lost
			d.lost++
		}
	}
	if isReadOnly(err) {
		drop(d.writer) // a different server may be the primary now
	}
	if isFenced(err) {
		if !t.fenced { // the server has a different number, for example after a failover
			d.id.Store(0)
		}
		return fmt.Errorf("%w: %w", log.ErrFenced, err)
	}
	return err
}

// connect opens the connection for writes, and inserts the row of this process.
func (d *database) connect() error {
	if d.writer != nil && !d.writer.IsClosed() && d.writer.TxStatus() == 'I' && d.id.Load() != 0 {
		return nil
	}
	if d.writer != nil {
		drop(d.writer)
		d.writer = nil
	}
	ctx, cancel := d.within(background, 0)
	defer cancel()
	conn, err := d.pool.connect(ctx, true)
	if err != nil {
		return err
	}
	d.writer = conn
	if d.id.Load() != 0 {
		return nil
	}
	// A process that dies leaves its row behind. Only the newest rows are kept, which are many more than there are live processes.
	const most = 10_000
	return exchange(ctx, conn,
		statement{text: "DELETE FROM stone.writers WHERE writer IN (SELECT writer FROM stone.writers WHERE writer < (SELECT max(writer) FROM stone.writers) - $1 FOR UPDATE SKIP LOCKED)", args: []any{int64(most)}},
		statement{text: "INSERT INTO stone.writers DEFAULT VALUES RETURNING writer", each: func(v [][]byte) { d.id.Store(integer(v[0])); d.commits = 0 }})
}

// committed reports whether a commit whose response was lost is durable. It marks the row of this process, which each transaction
// updates first. If the server has not read the transaction yet, the transaction will find a different number in the row and fail.
// If the server has started it, the mark waits until the transaction ends, or until the server ends it because it is idle.
func (d *database) committed(n int64) (bool, error) {
	if err := d.connect(); err != nil {
		return false, err
	}
	ctx, cancel := d.within(background, 0)
	defer cancel()
	err := exchange(ctx, d.writer, statement{mark, []any{d.id.Load()},
		func(v [][]byte) { d.commits = integer(v[0]) }})
	return d.commits == n|1, err
}

// tx is a [log.Tx]. It queues statements, and sends them when it needs a response.
type tx struct {
	*database
	reader
	number  int64 // number of the commit, always even
	started bool  // BEGIN has been sent
	fenced  bool  // Fence has been called
	queue   []statement
	size    int // size in bytes of the contents in the queue

	// Runs that this transaction has locked, by ID and by number. A missing run is nil.
	runs   map[string]*log.Run
	byRow  map[int64]*log.Run
	unread bool // the queue contains the statement that reads the runs
}

// know adds a run that this transaction has locked.
func (t *tx) know(r *log.Run) {
	own := *r
	t.runs[r.ID], t.byRow[r.Row] = &own, &own
}

// exec queues a statement.
func (t *tx) exec(text string, args ...any) {
	t.queue = append(t.queue, statement{text: text, args: args})
}

// silence returns how long the process may send nothing within a transaction before the server ends the transaction. Each lost
// transaction doubles this time, up to twice the lease, because the process may be slow rather than suspended.
func (t *tx) silence() time.Duration { return t.idle << min(t.lost, 3) }

// send sends the queued statements. The first call begins the transaction and counts it. The server ends a transaction if the
// process sends nothing for too long, so a suspended process does not keep a lock. Within a message, the server does so only if
// the message is the first after a response, so a large statement is always the first of an exchange.
func (t *tx) send() error {
	queue, size := t.queue, t.size
	t.queue, t.size, t.unread = nil, 0, false
	// The server must not end the transaction while this process encodes the contents.
	idle := fmt.Sprint((t.silence() + time.Duration(size>>20)*time.Second).Milliseconds())
	if !t.started {
		t.started = true
		queue = append([]statement{
			{text: "BEGIN ISOLATION LEVEL READ COMMITTED"},
			{text: "SELECT set_config('idle_in_transaction_session_timeout', $1, true), set_config('lock_timeout', $2, true)", args: []any{idle, fmt.Sprint(t.silence().Milliseconds())}},
			{text: count, args: []any{t.id.Load(), t.number, t.commits}},
		}, queue...)
	} else if size >= 1<<20 {
		queue = append([]statement{{text: "SELECT set_config('idle_in_transaction_session_timeout', $1, true)", args: []any{idle}}}, queue...)
	}
	ctx, cancel := t.within(background, size)
	defer cancel()
	for len(queue) > 0 {
		n := len(queue)
		if next := slices.IndexFunc(queue[1:], statement.large); next >= 0 {
			n = next + 1
		}
		if err := exchange(ctx, t.writer, queue[:n]...); err != nil {
			return err
		}
		queue = queue[n:]
	}
	return nil
}

// query implements the query method that a reader needs.
func (t *tx) query(_ context.Context, s statement, reset func()) error {
	reset()
	t.queue = append(t.queue, s)
	return t.send()
}

// Run implements [log.Reader]. It locks the run until the transaction ends, because later statements depend on it.
func (t *tx) Run(ctx context.Context, id string) (*log.Run, error) {
	if t.unread {
		if err := t.send(); err != nil {
			return nil, err
		}
	}
	if r, ok := t.runs[id]; ok {
		if r == nil {
			return nil, nil
		}
		return new(*r), nil
	}
	r, err := t.reader.run(ctx, id, " FOR UPDATE")
	if r != nil {
		t.know(r)
	}
	return r, err
}

// RunWith implements [log.RunReader].
func (t *tx) RunWith(id string, run int64, paths []string) (r *log.Run, found []*log.Row, whole bool, err error) {
	size := 0
	t.queue = append(t.queue,
		statement{byID + " FOR UPDATE", []any{id}, func(v [][]byte) { r = scanRun(v) }},
		statement{byPaths, []any{run, int64(0), textsOf(paths), int64(mostRows)}, func(v [][]byte) {
			found = append(found, scanRow(v))
			size += len(v[9])
		}})
	err = t.send()
	if r != nil {
		t.know(r)
	}
	return r, found, len(found) < mostRows && size < mostBytes, err
}

// Lock implements [log.Tx].
func (t *tx) Lock(ids, read []string) error {
	const these = " FROM stone.runs WHERE id = ANY($1::text[]) ORDER BY run FOR UPDATE"
	if len(read) == 0 {
		t.exec("SELECT"+these, textsOf(ids))
		return nil
	}
	for _, id := range read {
		t.runs[id] = nil
	}
	t.unread = true
	t.queue = append(t.queue, statement{"WITH locked AS (SELECT *" + these + ") SELECT " + runColumns + ", shape FROM locked WHERE id = ANY($2::text[])",
		[]any{textsOf(ids), textsOf(read)}, func(v [][]byte) { t.know(scanRun(v)) }})
	return nil
}

// Insert implements [log.Tx].
func (t *tx) Insert(r *log.Run) error {
	made, err := rows(background, t.reader, func(v [][]byte) int64 { return integer(v[0]) }, inserting, r.Arguments(r.ID, log.All)...)
	if err == nil {
		r.Row = made[0]
		t.know(r)
	}
	return err
}

var (
	inserting = log.Inserting("stone.")
	putting   = [...]string{log.Holding: log.Putting("stone.", log.Holding), log.Ending: log.Putting("stone.", log.Ending), log.All: log.Putting("stone.", log.All)}
)

// Put implements [log.Tx].
func (t *tx) Put(r *log.Run, which log.Fields) error {
	old := t.byRow[r.Row]
	if t.know(r); old != nil {
		t.byRow[r.Row].Beat, t.byRow[r.Row].Rows = old.Beat, old.Rows
	}
	t.exec(putting[which], r.Arguments(r.Row, which)...)
	return nil
}

// Label implements [log.Tx].
func (t *tx) Label(run int64, labels map[string]string) error {
	t.exec("DELETE FROM stone.labels WHERE run = $1", run)
	var names, values texts
	for name, value := range labels {
		names, values = append(names, new(log.Column(name))), append(values, new(log.Column(value)))
	}
	if len(names) > 0 {
		t.exec("INSERT INTO stone.labels (name, value, run) SELECT *, $3 FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING", names, values, run)
	}
	return nil
}

// mostInsert is the maximum size in bytes of the contents in a statement, not counting its last row. PostgreSQL's own limit is 1
// GB.
const mostInsert = 16 << 20

// Append implements [log.Tx].
func (t *tx) Append(rows []*log.Row) error {
	from, size := 0, 0
	for i, r := range rows {
		if len(r.Content) > mostContent {
			return fmt.Errorf("the result of %s has %d MB: at most %d MB can be kept", r.Path, len(r.Content)>>20, mostContent>>20)
		}
		t.size += len(r.Content)
		if size += len(r.Content); size > mostInsert {
			t.insert(rows[from : i+1])
			from, size = i+1, 0
		}
	}
	if from < len(rows) {
		t.insert(rows[from:])
	}
	return nil
}

func (t *tx) insert(rows []*log.Row) {
	var runs, numbers []int64
	var paths, heads texts
	var digests, reuses, nodes, parents, seals, contents blobs
	for _, r := range rows {
		runs, numbers = append(runs, r.Run), append(numbers, r.Seq)
		digests, reuses, nodes, parents = append(digests, r.Digest), append(reuses, r.Reuse), append(nodes, r.Node), append(parents, r.Parents)
		path, head := (*string)(nil), string(r.Head)
		if r.Digest != nil {
			path = &r.Path
		}
		paths, heads, seals, contents = append(paths, path), append(heads, &head), append(seals, r.Seal), append(contents, r.Content)
	}
	t.exec(`INSERT INTO stone.records (run, seq, digest, reuse, node, parents, path, head, seal, content)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], $7::text[], $8::text[], $9::bytea[], $10::bytea[])`,
		runs, numbers, digests, reuses, nodes, parents, paths, heads, seals, contents)
}

// Delete implements [log.Tx].
func (t *tx) Delete(run, first, last int64) (int64, error) {
	found, err := rows(background, t.reader, func(v [][]byte) int64 { return integer(v[0]) },
		"WITH gone AS (DELETE FROM stone.records WHERE run = $1 AND seq BETWEEN $2 AND $3 RETURNING 1) SELECT count(*) FROM gone", run, first, last)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// Remove implements [log.Tx].
func (t *tx) Remove(run int64) error {
	if r := t.byRow[run]; r != nil {
		t.runs[r.ID], t.byRow[run] = nil, nil
	}
	t.exec("DELETE FROM stone.records WHERE run = $1", run)
	for _, table := range []string{"questions", "labels", "batches", "receivers", "outbox"} {
		t.exec("DELETE FROM stone."+table+" WHERE run = $1", run)
	}
	t.exec("DELETE FROM stone.runs WHERE run = $1", run)
	return t.RemoveBlocks(run)
}

// PutBlocks implements [log.Tx].
func (t *tx) PutBlocks(run int64, blocks []*log.Block) error {
	var parents, slots texts
	var counts, seals, data blobs
	for _, b := range blocks {
		parents, slots = append(parents, &b.Parent), append(slots, &b.Slot)
		counts, seals, data = append(counts, b.Counts), append(seals, b.Seal), append(data, b.Data)
	}
	t.exec(`INSERT INTO stone.blocks (run, parent, slot, counts, seal, data)
		SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[])
		ON CONFLICT (run, parent, slot) DO UPDATE SET counts = excluded.counts, seal = excluded.seal, data = excluded.data`,
		run, parents, slots, counts, seals, data)
	return nil
}

// RemoveBlocks implements [log.Tx].
func (t *tx) RemoveBlocks(run int64) error {
	t.exec("DELETE FROM stone.blocks WHERE run = $1", run)
	return nil
}

// PutQuestion implements [log.Tx].
func (t *tx) PutQuestion(q *log.Question) error {
	t.exec(`INSERT INTO stone.questions (run, path, open, question, seal) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (run, path) DO UPDATE SET open = excluded.open, question = excluded.question, seal = excluded.seal`,
		q.Run, q.Path, q.Open, string(q.Text), q.Seal)
	return nil
}
