package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/internal/outline"
)

// The holder of a large run stores an outline in addition to its records. After every outlineEvery records it adds the steps of
// these records to the outline, in the transaction that writes the last of them. Readers add newer records in memory. Smaller runs
// have no stored outline and no such cost. Adding a step to an outline made of blocks takes 2 µs of CPU time. With one row of sums
// for each branch, updated by UPSERT, it would take 7 to 10 µs.

// outlineEvery is the number of new records that are added to the stored outline at a time.
const outlineEvery = 4096

// recent holds the steps that are not yet in a run's outline.
type recent struct {
	after  int64 // events contains all steps in records with higher numbers
	events []outline.Event
}

// blockStore is an [outline.Store] that reads the blocks of a run from a database.
type blockStore struct {
	from Reader
	run  int64
}

// Block implements [outline.Store].
func (s blockStore) Block(ctx context.Context, parent, slot string) ([]byte, error) {
	b, err := s.from.Block(ctx, s.run, parent, slot)
	if b == nil || err != nil {
		return nil, err
	}
	return b.Data, b.check(true)
}

// Blocks implements [outline.Store].
func (s blockStore) Blocks(ctx context.Context, parent string, whole bool) ([]outline.Block, error) {
	found, err := s.from.Blocks(ctx, s.run, parent, whole)
	if err != nil {
		return nil, err
	}
	blocks := make([]outline.Block, 0, len(found))
	for _, b := range found {
		if err := b.check(whole); err != nil {
			return nil, err
		}
		blocks = append(blocks, outline.Block{Parent: b.Parent, Slot: b.Slot, Counts: b.Counts, Data: b.Data})
	}
	return blocks, nil
}

func (b *Block) check(data bool) error {
	if !unbroken(b.Seal, b.Data, data, []byte(b.Parent), []byte(b.Slot), b.Counts) {
		return outline.ErrForm
	}
	return nil
}

// summarise adds the latest records of a run to its outline. It rebuilds an outline that cannot be read.
func (t *transaction) summarise(p *part) error {
	tree, err := outline.Open(background, blockStore{t, p.row})
	if err == nil {
		err = t.extend(p, tree)
	}
	switch {
	case errors.Is(err, outline.ErrForm) || errors.Is(err, outline.ErrMoved):
		p.recent, p.outlined = recent{after: p.next}, 0
		return t.RemoveBlocks(p.row)
	case errors.As(err, new(*journal.DamageError)): // the damage is reported to readers of the record
		p.recent, p.outlined = recent{after: p.next}, p.next
		return nil
	}
	return err
}

// extend adds the latest records of a run to an outline and stores the outline. If many records are missing, for example after a
// takeover, each commit adds only some of them.
func (t *transaction) extend(p *part, tree *outline.Tree) error {
	complete := tree.At >= p.recent.after
	if !complete {
		var err error
		if complete, err = t.catchUp(p, tree); err != nil {
			return err
		}
	}
	p.outlined = tree.At
	if complete {
		before := tree.At
		for _, e := range p.recent.events {
			if e.Seq > before {
				if err := tree.Fold(background, e); err != nil {
					return err
				}
			}
		}
		p.recent, p.outlined = recent{tree.At, make([]outline.Event, 0, len(p.recent.events))}, p.next
	}
	return t.store(p, tree)
}

// catchUp adds the records whose steps are neither in the outline nor in recent. It reports whether it has added all of them.
func (t *transaction) catchUp(p *part, tree *outline.Tree) (complete bool, err error) {
	added := 0
	err = t.j.recordsOf(background, t.Tx, p.run.id, p.row, Selection{After: tree.At, Steps: true, Heads: true, Most: outlineEvery}, func(row *Row, h head) error {
		if row.Seq > p.recent.after {
			return errEnough
		}
		added++
		return fold(background, tree, row, h)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return false, err
	}
	return added < outlineEvery, nil
}

func (t *transaction) store(p *part, tree *outline.Tree) error {
	var blocks []*Block
	err := tree.Flush(func(o outline.Block) error {
		b := &Block{Parent: o.Parent, Slot: o.Slot, Counts: o.Counts, Data: o.Data}
		b.Seal = seal(b.Data, []byte(b.Parent), []byte(b.Slot), b.Counts)
		blocks = append(blocks, b)
		return nil
	})
	if err != nil {
		return err
	}
	return t.PutBlocks(p.row, blocks)
}

// fold adds the steps in a row to an outline.
func fold(ctx context.Context, tree *outline.Tree, row *Row, h head) error {
	for place, i := range h.Started {
		if err := tree.Fold(ctx, i.event(row.Seq, place, h.At)); err != nil {
			return err
		}
	}
	switch {
	case row.isResult():
		return tree.Fold(ctx, h.event(row.Path, row.Seq))
	case h.Step != "":
		return tree.Fold(ctx, h.event(h.Path, row.Seq))
	}
	return nil
}

func (i *intent) event(seq int64, place int, at int64) outline.Event {
	return outline.Event{What: outline.Started, Path: i.Path, Kind: i.Kind, Seq: seq, Place: place, At: at}
}

// event returns the outline event for a step's result, or for an attempt without a result.
func (h head) event(path string, seq int64) outline.Event {
	e := outline.Event{What: outline.Done, Path: path, Kind: h.Kind, Seq: seq, At: h.At, Usage: h.Usage}
	switch {
	case h.Step != "":
		e.What = outline.Left
	case h.Record.Failure != nil:
		e.What = outline.Failed
	}
	return e
}

// forgotten removes failures that are to be retried from the outline of a run.
func (t *transaction) forgotten(p *part, events []outline.Event) error {
	tree, err := outline.Open(background, blockStore{t, p.row})
	changed := false
	for _, e := range events {
		switch {
		case err != nil:
		case e.Seq > tree.At:
			p.recent.events = append(p.recent.events, e)
		default:
			err, changed = tree.Fold(background, e), true
		}
	}
	if err == nil && changed {
		return t.store(p, tree)
	}
	if errors.Is(err, outline.ErrForm) || errors.Is(err, outline.ErrMoved) {
		return t.RemoveBlocks(p.row)
	}
	return err
}

// view is a [journal.Outline] of a recorded run.
type view struct {
	*Journal
	id  string
	run int64

	mu   sync.Mutex
	tree *outline.Tree
}

// Outline implements [journal.Journal].
func (j *Journal) Outline(ctx context.Context, run string) (journal.Outline, error) {
	r, err := j.existing(ctx, run)
	if err != nil {
		return nil, err
	}
	v := &view{Journal: j, id: run, run: r.Row}
	return v, v.read(ctx, func(*outline.Tree) error { return nil })
}

// read passes the outline to f. If the holder stores a newer outline in the meantime, read opens that one and calls f again. If
// the stored outline cannot be read, read builds an outline from the records.
func (v *view) read(ctx context.Context, f func(*outline.Tree) error) (err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	const most = 8
	store := outline.Store(blockStore{v.data, v.run})
	for range most {
		if v.tree == nil {
			v.tree, err = v.open(ctx, store)
		}
		if v.tree != nil && err == nil {
			err = f(v.tree)
		}
		switch {
		case errors.Is(err, outline.ErrForm):
			store = noStore{}
		case !errors.Is(err, outline.ErrMoved):
			return v.data.Explain(err)
		}
		v.tree = nil
	}
	return v.data.Explain(err)
}

// open returns the stored outline, extended by the newer records.
func (v *view) open(ctx context.Context, store outline.Store) (*outline.Tree, error) {
	tree, err := outline.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	err = v.recordsOf(ctx, v.data, v.id, v.run, Selection{After: tree.At, Steps: true, Heads: true}, func(row *Row, h head) error {
		return fold(ctx, tree, row, h)
	})
	if err == nil {
		err = v.exists(ctx)
	}
	if err != nil {
		return nil, err
	}
	return tree, nil
}

// exists returns journal.ErrNoRun if the run was removed, even if another run now has the same ID.
func (v *view) exists(ctx context.Context) error {
	r, err := v.existing(ctx, v.id)
	if err == nil && r.Row != v.run {
		err = noRun(v.id)
	}
	return err
}

// noStore is an empty [outline.Store], used when the stored outline of a run cannot be read.
type noStore struct{}

func (noStore) Block(context.Context, string, string) ([]byte, error)         { return nil, nil }
func (noStore) Blocks(context.Context, string, bool) ([]outline.Block, error) { return nil, nil }

var branchStates = [...]journal.BranchState{outline.IsDone: journal.BranchDone, outline.IsOpen: journal.BranchOpen, outline.IsPartly: journal.BranchPartly, outline.IsFailed: journal.BranchFailed}

// Level implements [journal.Outline].
func (v *view) Level(ctx context.Context, path string, p journal.Page) (l journal.Level, err error) {
	wanted := outline.Page{From: p.From, Limit: p.Size()}
	if i := slices.Index(branchStates[:], p.Only); i >= 0 {
		wanted.Only = new(outline.State(i))
	} else if p.Only != "" {
		return l, fmt.Errorf("state %q: want one of %q", p.Only, branchStates)
	}
	var found outline.Level
	err = v.read(ctx, func(t *outline.Tree) error {
		found, err = t.Level(ctx, path, wanted)
		return err
	})
	if err != nil {
		return l, err
	}
	l = journal.Level{Sum: branch(outline.Branch{Path: path, Sums: found.Sums}), Next: found.Next, Hidden: found.Hidden, Counts: map[journal.BranchState]int{}}
	for i, n := range found.Counts {
		if l.All += n; n > 0 {
			l.Counts[branchStates[i]] = n
		}
	}
	for _, b := range found.Branches {
		l.Branches = append(l.Branches, branch(b))
	}
	return l, v.steps(ctx, found.Branches, l.Branches)
}

func branch(b outline.Branch) journal.Branch {
	return journal.Branch{
		Path: b.Path, Below: b.Below, Recorded: b.Recorded, Open: b.Open, Failed: b.Failed,
		Started: instant(b.Started), Ended: instant(b.Ended), Usage: b.Usage,
	}
}

// instant converts Unix milliseconds to a time, and 0 to the zero time.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// steps sets the Step of each branch, if there is a step at its path.
func (v *view) steps(ctx context.Context, found []outline.Branch, into []journal.Branch) error {
	var numbers []int64
	places := map[string]int{}
	for i, b := range found {
		if n := len(b.Own); n > 0 {
			own := b.Own[n-1]
			into[i].Step = &journal.Step{Path: b.Path, Kind: own.Kind, Attempts: own.Attempts, Failures: own.Failures, Usage: own.Usage, Started: into[i].Started}
			numbers, places[b.Path] = append(numbers, own.Seq), i
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	step := func(path, kind string) *journal.Step {
		if i, ok := places[path]; ok && into[i].Step.Kind == kind {
			return into[i].Step
		}
		return nil
	}
	return v.recordsOf(ctx, v.data, v.id, v.run, Selection{Seqs: numbers, Steps: true, Heads: true}, func(row *Row, h head) error {
		for _, i := range h.Started {
			if s := step(i.Path, i.Kind); s != nil && !s.Recorded {
				s.Name = i.Name
				if i.Declared != nil {
					s.Declared = *i.Declared
				}
			}
		}
		if s := step(cmp.Or(h.Path, row.Path), h.Kind); s != nil {
			s.Name = h.Name
			if row.isResult() {
				used := s.Usage
				end(s, row, h, time.UnixMilli(h.At))
				s.Usage = used
			}
		}
		return nil
	})
}

// Places implements [journal.Outline].
func (v *view) Places(ctx context.Context) (out []journal.Place, err error) {
	err = v.read(ctx, func(t *outline.Tree) error {
		for _, p := range t.Places() {
			out = append(out, journal.Place{Path: p.Path, Open: p.Open, Recorded: p.Recorded, Failed: p.Failed, First: p.First, Visits: p.Visits, Usage: p.Usage})
		}
		return nil
	})
	return out, err
}
