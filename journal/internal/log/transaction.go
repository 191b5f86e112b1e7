package log

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/fleet"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/internal/outline"
)

// transaction is the state of a writer's transaction. The runs are updated only after it has been committed.
type transaction struct {
	Tx
	j        *Journal
	parts    []*part
	rows     []*Row // rows to append
	since    []*write
	careful  bool                        // find out which run was lost
	sums     map[fleet.Key]budget.Amount // spending that was read
	open     []*Outstanding              // open batches that were read
	admitted []ended                     // steps that start in this transaction
	over     []ended                     // steps that are no longer in flight
}

// part is the part of a transaction that belongs to one run.
type part struct {
	run     *run
	row     int64
	rows    int64 // number of records; negative until the run is loaded
	next    int64 // number of the last record
	beat    int64
	now     *Beat // used with Fence: contains the beat once the transaction is committed
	aside   bool  // a former holder may have put results aside
	touched bool  // the run is changed, so this Journal must hold it
	ours    bool  // the run cannot be lost before the transaction ends
	counted int64 // number of records known to the database
	gone    bool  // the run is removed from the database
	intents []*intent
	nodes   []half        // nodes that are new in the database
	paid    budget.Amount // cost of the rows to append, minus estimates that were not spent

	recent   recent
	outlined int64
}

// errStale is the error of a write that was queued before the run was lost and acquired again: this process has not yet read the
// records that the other process has written.
var errStale = errors.New("the run was lost meanwhile")

// errAbandoned is the error of a write whose caller has stopped waiting.
var errAbandoned = fmt.Errorf("was not written in time: %w", journal.ErrUnavailable)

// refused is the error of a single write that changed nothing, so the transaction can continue.
type refused struct{ error }

// lostError reports that a run has another owner.
type lostError struct {
	run    *run
	writes map[*write]bool // writes of the lost run
	why    error
}

func (e *lostError) Error() string { return e.why.Error() }

// rewoundError reports that a run's beat is older than the last committed one. The database has lost commits that this process
// relies on, so the process gives up the run.
type rewoundError struct{ run *journal.HeldError }

func (e *rewoundError) Error() string {
	return fmt.Sprintf("run %q in %s: the database has lost commits that it had acknowledged, as after a failover to an asynchronous standby: resume the run",
		e.run.Run, e.run.Where)
}

func (e *rewoundError) Unwrap() error { return e.run }

// background is the context for transactions: once started, a write is never canceled.
var background = context.Background()

// part returns the part of the transaction for a run. The transaction will fail if this Journal does not hold the run, or the
// outer run whose lease covers it.
func (t *transaction) part(r *run) *part {
	if r.outer != nil {
		t.part(r.outer)
	}
	p := t.find(r)
	p.touched = true
	return p
}

func (t *transaction) find(r *run) *part {
	for _, p := range t.parts { // a transaction has only a few parts, usually one
		if p.run == r {
			return p
		}
	}
	p := &part{run: r, row: r.row, rows: r.rows, next: r.next, beat: r.beat, recent: r.recent, outlined: r.outlined}
	t.parts = append(t.parts, p)
	return p
}

// lock locks the runs that a group of writes writes to, and reads the runs that it changes. All processes lock runs in the same
// order, because two processes that write to each other's runs could otherwise deadlock.
func (t *transaction) lock(group []*write) error {
	ids, read := map[string]bool{}, map[string]bool{}
	of := func(id string, changes bool) {
		ids[id] = true
		if changes {
			read[id] = true
		}
	}
	for _, x := range group {
		if x.run != nil {
			of(x.run.id, x.do != nil)
			if x.run.outer != nil {
				of(x.run.outer.id, x.free)
			}
		}
		if x.also != "" {
			of(x.also, x.do != nil)
		}
	}
	if len(ids) < 2 && len(read) == 0 {
		return nil
	}
	return t.Lock(slices.Sorted(maps.Keys(ids)), slices.Sorted(maps.Keys(read)))
}

// apply executes the writes of a group. It first executes the writes that come before the first change of their run, and renews
// the lease of each run that will be changed, all in one round trip. Then it executes the others.
func (t *transaction) apply(group []*write) error {
	if err := t.lock(group); err != nil {
		return err
	}
	var later []*write
	changed := map[*run]bool{} // true for runs that this Journal must already hold
	for _, x := range group {
		x.err = nil
		_, after := changed[x.run]
		switch {
		case x.do == nil && !after:
			if err := t.write(x); err != nil {
				return err
			}
			continue
		case x.run != nil && !after:
			changed[x.run] = !x.free && x.run.row != 0
		}
		later = append(later, x)
	}
	for _, x := range later {
		if changed[x.run] && !x.free {
			t.since = append(t.since, x)
			t.part(x.run)
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, x := range later {
		if x.do != nil {
			if err := t.flush(); err != nil {
				return err
			}
		}
		if err := t.write(x); err != nil {
			return err
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	return t.spend()
}

// write executes a write.
func (t *transaction) write(x *write) error {
	t.since = append(t.since, x)
	switch {
	case x.abandoned.Load() && x.result == nil && !x.stays:
		x.err = errAbandoned
	case x.do != nil:
		err := x.do(t)
		if no := (refused{}); errors.As(err, &no) {
			x.err, err = no.error, nil
		}
		return err
	case x.intent == nil && x.result == nil:
		t.part(x.run)
	case t.part(x.run).rows < 0:
		x.err = errStale
	case x.intent != nil:
		if x.err = x.run.failure(); x.err != nil { // no step may start if earlier records of the run were not written
			return nil
		}
		var err error
		if x.err, err = t.admit(x.run, x.intent); x.err == nil && err == nil {
			p := t.part(x.run)
			p.intents = append(p.intents, x.intent)
		}
		return err
	default:
		return t.record(t.part(x.run), x.result)
	}
	return nil
}

// remove removes a run from the database.
func (t *transaction) remove(p *part) error {
	p.rows, p.gone = 0, true
	return t.Remove(p.row)
}

// record appends a result. Before that it appends the ancestors of the result's node that are not yet recorded.
func (t *transaction) record(p *part, r *result) error {
	if slices.ContainsFunc(p.intents, func(i *intent) bool { return i.digest == id(r.Digest) }) {
		t.start(p) // the step's intent was queued before its result
	}
	if r.made != nil {
		for _, n := range record.Missing(r.made, p.run.hasNode) {
			if err := t.node(p, n); err != nil {
				return err
			}
		}
	}
	before := p.paid
	t.append(p, r.Row, r.event)
	if r.child { // shared budgets have already counted this cost in the child
		p.paid = before
		t.over = append(t.over, ended{p.run.id, id(r.Digest)})
		return nil
	}
	if r.costs {
		t.end(p, id(r.Digest), nil)
	}
	return nil
}

// node appends a node that no step created.
func (t *transaction) node(p *part, n *dag.Node) error {
	r, err := nodeRow(n, t.j.now())
	if err == nil {
		t.append(p, r)
	}
	return err
}

// append appends a row and the outline events for it.
func (t *transaction) append(p *part, r *Row, events ...outline.Event) {
	p.next, p.rows = p.next+1, p.rows+1
	r.Run, r.Seq = p.row, p.next
	for _, e := range events {
		e.Seq = r.Seq
		if cost := e.Usage.Amount(); cost != (budget.Amount{}) {
			p.paid.Tokens, p.paid.USD = p.paid.Tokens+cost.Tokens, p.paid.USD+cost.USD
		}
		p.recent.events = append(p.recent.events, e)
	}
	if r.Node != nil && !p.run.hasNode(id(r.Node)) {
		node := halfOf(id(r.Node))
		p.run.nodes[node] = true
		p.nodes = append(p.nodes, node)
	}
	t.rows = append(t.rows, r)
}

// start appends the row for the run's intents.
func (t *transaction) start(p *part) {
	for intents := range slices.Chunk(p.intents, maxPlaces) {
		at := t.j.now()
		events := make([]outline.Event, len(intents))
		for i, intent := range intents {
			events[i] = intent.event(0, i, at.UnixMilli())
		}
		t.append(p, intentRow(intents, at), events...)
	}
	p.intents = nil
}

// flush writes the appended rows, provided that this Journal still holds the runs.
func (t *transaction) flush() error {
	for _, p := range t.parts {
		t.start(p)
	}
	if err := t.advance(); err != nil {
		return err
	}
	var err error
	if len(t.rows) > 0 {
		err = t.Append(t.rows)
		for _, p := range t.parts {
			if err == nil && p.next-p.outlined >= outlineEvery {
				err = t.summarise(p)
			}
		}
	}
	t.rows, t.since = nil, nil
	if err != nil {
		return err
	}
	return nil
}

// advance renews the lease of each changed run and stores its number of records.
func (t *transaction) advance() error {
	var beats, counts []*Beat
	var parts []*part
	for _, p := range t.parts {
		b := &Beat{Run: p.row, Owner: p.run.owner(t.j.owner), Rows: p.rows}
		switch {
		case p.gone:
		case p.touched && !p.ours:
			parts, beats = append(parts, p), append(beats, b)
		case p.ours && p.rows >= 0 && p.rows != p.counted:
			counts = append(counts, b)
			p.counted = p.rows
		}
	}
	if len(counts) > 0 {
		if err := t.Count(counts); err != nil {
			return err
		}
	}
	if len(beats) == 0 {
		return nil
	}
	if fencer, ok := t.Tx.(Fencer); ok && !t.careful {
		for i, p := range parts {
			beats[i].Now, p.now = p.beat, beats[i]
			p.fence()
		}
		return fencer.Fence(beats)
	}
	if err := t.Advance(beats); err != nil {
		return err
	}
	for i, p := range parts {
		if beats[i].Now == 0 {
			return t.lost(p, nil)
		}
		if beats[i].Now <= p.beat {
			return t.lost(p, &rewoundError{&journal.HeldError{Where: t.j.data.Name(), Run: p.run.id, Owner: t.j.owner}})
		}
		p.heard(beats[i].Now)
		p.fence()
	}
	return nil
}

// fence records that the run can no longer be lost before the transaction ends.
func (p *part) fence() { p.touched, p.ours, p.counted = false, true, p.rows }

// heard records the new beat of the run. If the beat has grown by more than 1, another process has put a result aside.
func (p *part) heard(beat int64) {
	p.aside = p.aside || p.beat+1 != beat
	p.beat = beat
}

// lost returns the error for writes to a run that this Journal no longer holds. If why is nil, the run has another owner.
func (t *transaction) lost(p *part, why error) error {
	if why == nil {
		now, err := t.Run(background, p.run.id)
		if err != nil {
			return err
		}
		owner := "another process"
		if now != nil {
			owner = now.Owner
		}
		why = t.j.held(p.run.id, owner)
	}
	e := &lostError{run: p.run, writes: map[*write]bool{}, why: why}
	for _, x := range t.since {
		if x.run == p.run || x.run != nil && x.run.outer == p.run {
			e.writes[x] = true
		}
	}
	if len(e.writes) == 0 {
		return e.why
	}
	return e
}

// finish updates the runs after the transaction has ended; ok means that it was committed.
func (t *transaction) finish(ok bool) {
	landed := t.over
	if !ok {
		landed = t.admitted
	}
	for _, s := range landed {
		t.j.fleet.End(s.run, s.step)
	}
	for _, p := range t.parts {
		if p.now != nil {
			p.heard(p.now.Now)
		}
		if ok {
			p.run.row, p.run.rows, p.run.next, p.run.beat = p.row, p.rows, p.next, p.beat
			p.run.recent, p.run.outlined = p.recent, p.outlined
			if p.aside {
				p.run.aside.stale.Store(true)
			}
			if p.gone { // the lease of a removed run is no longer renewed
				p.run.held.Store(false)
			}
			continue
		}
		for _, id := range p.nodes {
			delete(p.run.nodes, id)
		}
	}
}
