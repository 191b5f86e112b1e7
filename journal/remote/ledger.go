package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// ledger has what the journal of a run knows about the steps that other processes do within leaves.
type ledger struct {
	recalling sync.Mutex
	recalled  bool
	alone     bool                // nobody had sent leaves when the desk looked first
	again     []journal.Again     // of the run
	here      map[string][]string // places of the steps that the journal has within leaves without a result, by the paths of those

	mu     sync.Mutex
	noted  map[string]noted         // steps that cost money, by kind and path
	before map[dag.ID]budget.Amount // spent by leaves that were revoked
}

// noted is the journal's record of a step.
type noted struct {
	attempts int
	done     bool
	spent    budget.Amount // what the run had been charged when this process took it over
}

func placeOf(kind, path string) string { return kind + " " + path }

// recall charges the run, once, with the costs of its leaves that its journal does not know, because
// the former process lost the run before they ended. That process may still live and grant slices,
// and workers may still spend the old ones. So recall first takes the next number: slices of lower
// numbers pay for no attempt that is noted later.
// A former process that has recalled has left the position up to which the journal knows all attempts.
func (d *desk) recall(ctx context.Context) error {
	d.ledger.recalling.Lock()
	defer d.ledger.recalling.Unlock()
	if d.ledger.recalled {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var err error
	if d.holder, _, err = note(ctx, d.board.PostHeld, d.run, holderKey, try{}); err != nil {
		return err
	}
	info, err := d.cfg.Journal.Find(ctx, d.run)
	if err != nil {
		return err
	}
	steps, err := d.cfg.Journal.Steps(ctx, d.run)
	if err != nil {
		return err
	}
	d.ledger.again, d.ledger.here = info.Again, within(steps)
	if d.holder > 1 { // otherwise nobody has granted a slice before
		if err := d.charge(ctx, steps); err != nil {
			return err
		}
	}
	d.ledger.recalled = true
	return nil
}

// inherited reports whether an earlier process has sent leaves of the run: workers may have done, or be
// doing, what stays in this process now.
func (d *desk) inherited(ctx context.Context) (bool, error) {
	d.ledger.recalling.Lock()
	defer d.ledger.recalling.Unlock()
	if d.ledger.recalled || d.ledger.alone {
		return d.holder > 1, nil
	}
	earlier, err := d.board.PostedUnder(ctx, d.run, holderKey)
	d.ledger.alone = err == nil && len(earlier) == 0
	return len(earlier) > 0, err
}

// charged is the item of a holder that has recalled.
type charged struct {
	Until int64 `json:"until"` // the journal knows the attempts up to this position
}

// charge charges the run with the attempts that its journal does not know, and notes them there.
func (d *desk) charge(ctx context.Context, steps []journal.Step) error {
	d.ledger.mu.Lock()
	for _, s := range steps {
		if s.Declared != (budget.Amount{}) {
			d.ledger.noted[placeOf(s.Kind, s.Path)] = noted{s.Attempts, s.Recorded, s.Spent()}
		}
	}
	d.ledger.mu.Unlock()
	items, err := d.board.PostedUnder(ctx, d.run, chargeKey)
	if err != nil {
		return err
	}
	var last charged
	for _, i := range items {
		var c charged
		if err := read(i, &c); err != nil {
			return err
		}
		last.Until = max(last.Until, c.Until)
	}
	leaves := map[dag.ID]bool{}
	last.Until, err = d.tried(ctx, last.Until, func(i journal.Item) error {
		leaf, _, ok := strings.Cut(strings.TrimPrefix(i.Key, tryKey), "/")
		if _, step, _ := strings.Cut(i.Key[len(tryKey):], "/"); !ok || !strings.Contains(step, "/") {
			return nil // of work
		}
		id, err := dag.ParseID(leaf)
		leaves[id] = true
		return err
	})
	if err != nil {
		return err
	}
	for leaf := range leaves {
		paid, err := d.paid(ctx, leaf)
		if err != nil {
			return err
		}
		spent, err := d.note(ctx, paid...)
		if err != nil {
			return err
		}
		budget.From(ctx).OfRun().Charge(spent)
	}
	i, err := item(fmt.Sprint(chargeKey, d.holder), last)
	if err != nil {
		return err
	}
	_, err = d.board.Post(ctx, d.run, i)
	return err
}

// note imports steps without the attempts that the journal knows. It returns the cost that the journal
// did not know. Steps that it has imported before add nothing.
func (d *desk) note(ctx context.Context, steps ...record.Done) (spent budget.Amount, err error) {
	for _, s := range steps {
		at := placeOf(s.Key.Kind, s.Key.Path)
		d.ledger.mu.Lock()
		known := d.ledger.noted[at]
		d.ledger.mu.Unlock()
		total := s
		if s.Declared != (budget.Amount{}) {
			if known.done || s.Record == nil && known.attempts >= s.Attempts {
				continue
			}
			s.Attempts = max(s.Attempts-known.attempts, 0)
		}
		if err := record.Import(ctx, s); err != nil {
			return spent, err
		}
		if s.Declared == (budget.Amount{}) {
			continue
		}
		now := noted{max(known.attempts, total.Attempts), s.Record != nil, larger(known.spent, total.Spent())}
		spent = spent.Add(less(now.spent, known.spent))
		d.ledger.mu.Lock()
		d.ledger.noted[at] = now
		d.ledger.mu.Unlock()
	}
	return spent, nil
}

// past is the board's record of a leaf that was handed out before.
type past struct {
	again  bool
	result *result       // that counts for ever
	need   budget.Quote  // that the last slice refused
	want   budget.Amount // that the largest slice had left
	number int           // of the last slice
	before budget.Amount // what the run had been charged for the leaf
}

// history reads what earlier processes, or this one, have left of a leaf. It reads the items of this
// leaf alone, and of one that has its result only what it has cost.
func (d *desk) history(ctx context.Context, leaf dag.ID) (p past, err error) {
	d.ledger.mu.Lock()
	before, revoked := d.ledger.before[leaf]
	delete(d.ledger.before, leaf)
	d.ledger.mu.Unlock()
	if d.holder == 1 && !revoked {
		return past{}, nil
	}
	p.again, p.before = true, before
	if !revoked {
		paid, err := d.paid(ctx, leaf)
		if err != nil {
			return p, err
		}
		d.ledger.mu.Lock()
		for _, s := range paid {
			p.before = p.before.Add(d.ledger.noted[placeOf(s.Key.Kind, s.Key.Path)].spent)
		}
		d.ledger.mu.Unlock()
	}
	results, err := d.board.PostedUnder(ctx, d.run, resultKey+leaf.String())
	if err != nil {
		return p, err
	}
	for _, i := range results {
		r := new(result)
		if err := read(i, r); err != nil {
			return p, err
		}
		if final(i.Key) {
			p.result = r
			return p, nil
		}
		if r.More != nil {
			p.need = *r.More
		}
	}
	return p, d.granted(ctx, leaf, &p)
}

// granted reads the slices of a leaf.
func (d *desk) granted(ctx context.Context, leaf dag.ID, p *past) error {
	items, err := d.board.PostedUnder(ctx, d.run, sliceKey+leaf.String()+"/")
	if err != nil {
		return err
	}
	p.number = len(items) // they are numbered from 1, without a gap
	for _, i := range items {
		var g grant
		if err := read(i, &g); err != nil {
			return err
		}
		if l := g.Limits; l != nil {
			p.want = larger(p.want, less(budget.Amount{Roundtrips: l.Roundtrips, Tokens: l.Tokens, USD: l.USD}, p.before))
		}
	}
	return nil
}

// revoke closes the slice of an order for which nobody waits any more, and settles it with the cost
// of the leaf. The closed slice pays for no attempt that is noted later. If the
// journal fails, the amount of the slice stays taken, since its cost is unknown.
func (d *desk) revoke(ctx context.Context, p *pending) error {
	if !d.sent(p) && p.slice.number == 0 {
		p.slice.cancel()
		return nil
	}
	spent, err := d.close(context.WithoutCancel(ctx), p)
	if err != nil {
		p.slice.taken.Keep()
		return err
	}
	p.slice.settle(spent)
	return nil
}

// spent returns what a leaf has spent, of which its worker says so much. If that is less than the run was
// charged with for the leaf, either an attempt that was counted has not started, or another worker has paid
// for attempts that this one does not know: the board tells.
func (d *desk) spent(ctx context.Context, leaf dag.ID, said, charged budget.Amount) (budget.Amount, error) {
	if less(charged, said) == (budget.Amount{}) {
		return said, nil
	}
	paid, err := d.paid(context.WithoutCancel(ctx), leaf)
	if err != nil {
		return said, err
	}
	var all budget.Amount
	for _, s := range paid {
		all = all.Add(s.Spent())
	}
	return larger(said, all), nil
}

// close closes the slices of a leaf and returns what they have paid for.
func (d *desk) close(ctx context.Context, p *pending) (spent budget.Amount, err error) {
	leaf := p.leaf
	if err := p.slice.post(ctx, d, leaf, grant{Closed: true}); err != nil {
		return spent, err
	}
	paid, err := d.paid(ctx, leaf)
	if err != nil {
		return spent, err
	}
	if _, err := d.note(ctx, paid...); err != nil {
		return spent, err
	}
	for _, s := range paid {
		spent = spent.Add(s.Spent())
	}
	d.ledger.mu.Lock()
	d.ledger.before[leaf] = spent
	d.ledger.mu.Unlock()
	return spent, nil
}

// paid returns the steps of a leaf that cost money and have attempts on the board. An attempt without
// a result may have cost as much as it declared.
func (d *desk) paid(ctx context.Context, leaf dag.ID) ([]record.Done, error) {
	return paid(ctx, d.board, d.run, leaf)
}

func paid(ctx context.Context, board journal.Board, run string, leaf dag.ID) (steps []record.Done, err error) {
	tries, err := board.PostedUnder(ctx, run, tryKey+leaf.String()+"/")
	if err != nil || len(tries) == 0 {
		return nil, err
	}
	all, err := counts(ctx, board, run, leaf, tries)
	if err != nil {
		return nil, err
	}
	index := map[dag.ID]int{}
	var keys []string
	for _, t := range all {
		at, ok := index[t.Key.Digest]
		if !ok {
			at = len(steps)
			index[t.Key.Digest] = at
			steps = append(steps, record.Done{Key: *t.Key, Declared: t.Declared})
			keys = append(keys, stepOf(leaf, t.Key.Digest))
		}
		steps[at].Attempts++
	}
	done, err := board.Posted(ctx, run, keys...)
	if err != nil {
		return nil, err
	}
	for at, key := range keys {
		if found, ok := done[key]; ok {
			attempts := steps[at].Attempts
			if err := read(found, &steps[at]); err != nil {
				return nil, err
			}
			if steps[at].Key.RunID != run || stepOf(leaf, steps[at].Key.Digest) != key {
				return nil, fmt.Errorf("item %s is of another step: it is refused", key)
			}
			steps[at].Attempts = max(steps[at].Attempts, attempts)
		}
	}
	return steps, nil
}

// An attempt at a step that costs money is on the board at a position.
type attempt struct {
	try
	Seq int64
}

// counts returns the attempts within a leaf that start. When such an attempt was noted, its slice was the last one of the leaf,
// its holder the last one of the run, and its worker knew of all earlier attempts that start. A worker looks at the same
// before it starts one, so no reader counts an attempt that its worker gives up.
func counts(ctx context.Context, board journal.Board, run string, leaf dag.ID, tries []journal.Item) (all []attempt, err error) {
	holders, err := board.PostedUnder(ctx, run, holderKey)
	if err != nil {
		return nil, err
	}
	slices, err := board.PostedUnder(ctx, run, sliceKey+leaf.String()+"/")
	if err != nil {
		return nil, err
	}
	grants := make([]grant, len(slices))
	for n, i := range slices {
		if err := read(i, &grants[n]); err != nil {
			return nil, err
		}
	}
	// The items of holders and slices are in the order of their numbers, from 1.
	pays := func(a attempt) bool {
		for n, i := range holders {
			if n+1 > a.Holder && i.Seq < a.Seq {
				return false
			}
		}
		for n, i := range slices {
			if n+1 > a.Slice && grants[n].Holder >= a.Holder && i.Seq < a.Seq {
				return false
			}
		}
		return true
	}
	started := map[dag.ID]int{}
	for _, i := range tries {
		a := attempt{Seq: i.Seq}
		if err := read(i, &a.try); err != nil {
			return nil, err
		}
		// Former versions noted no holder, and started each attempt that they noted.
		if a.Key != nil && (a.Holder == 0 || pays(a) && started[a.Key.Digest] <= a.Counted) {
			started[a.Key.Digest]++
			all = append(all, a)
		}
	}
	return all, nil
}

// bring records the steps within a leaf that other processes have done, of which there are at least n.
func (d *desk) bring(ctx context.Context, leaf step.Key, n int) error {
	if n == 0 {
		return nil
	}
	steps, err := stepsOf(ctx, d.board, leaf)
	if err != nil {
		return err
	}
	_, err = d.note(ctx, steps...)
	return err
}

// stepsOf returns the steps within a leaf that are on the board.
func stepsOf(ctx context.Context, board journal.Board, leaf step.Key) ([]record.Done, error) {
	items, err := board.PostedUnder(ctx, leaf.RunID, stepKey+leafOf(leaf).String()+"/")
	if err != nil {
		return nil, err
	}
	steps := make([]record.Done, len(items))
	for i := range items {
		if steps[i], err = readStep(items[i], leaf); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// within returns the places of recorded steps within leaves that have no result, by the paths of those.
func within(steps []journal.Step) map[string][]string {
	places := map[string][]string{}
	for _, s := range steps {
		if s.Kind == "leaf" && !s.Recorded {
			places[s.Path] = nil
		}
	}
	for _, s := range steps {
		if !s.Recorded || len(places) == 0 {
			continue
		}
		for up := address.Parent(s.Path); up != ""; up = address.Parent(up) {
			if _, open := places[up]; open {
				places[up] = append(places[up], placeOf(s.Kind, s.Path))
			}
		}
	}
	return places
}

// anew reports whether a leaf, or a step within it, is done anew.
func (d *desk) anew(path string) bool {
	return slices.ContainsFunc(d.ledger.again, func(a journal.Again) bool {
		return a.Path == path || a.Path != "" && (address.Within(path, a.Path) || address.Within(a.Path, path))
	})
}

// stays reports whether a leaf must be done in this process, because the journal has steps of it that
// the board does not have: they were done in the process of the run.
func (d *desk) stays(ctx context.Context, leaf step.Key) (bool, error) {
	here := d.ledger.here[leaf.Path]
	if len(here) == 0 {
		return false, nil
	}
	steps, err := stepsOf(ctx, d.board, leaf)
	if err != nil {
		return false, err
	}
	known := map[string]bool{}
	for _, s := range steps {
		known[placeOf(s.Key.Kind, s.Key.Path)] = true
	}
	return slices.ContainsFunc(here, func(place string) bool { return !known[place] }), nil
}

// errForeign means that a result is not of the order for which it is on the board.
var errForeign = errors.New("the board has a result that is not of this order, and it is refused: resume with --again and the path of the leaf to do it in the process of the run")

// bound reports whether a result is of the leaf of an order. It is not if the order on the board is of
// other work at the place. The error is errForeign if the result names no slice of the order.
func (d *desk) bound(ctx context.Context, p *pending, got *result) (bool, error) {
	d.mu.Lock()
	known := p.slice.posts[got.Grant] // a result can be there before the holder knows that its order is written
	d.mu.Unlock()
	if known && got.Leaf == p.order.Key.Digest {
		return true, nil
	}
	key := orderKey + p.leaf.String()
	items, err := d.board.Posted(ctx, d.run, key)
	if err != nil {
		return false, err
	}
	var o order
	if found, ok := items[key]; !ok {
		return false, errForeign
	} else if err := read(found, &o); err != nil {
		return false, err
	}
	if o.Key.Digest != p.order.Key.Digest {
		return false, nil
	}
	of := got.Grant == o.Post
	granted, err := d.board.PostedUnder(ctx, d.run, sliceKey+p.leaf.String()+"/")
	for _, i := range granted {
		var g grant
		if err := read(i, &g); err != nil {
			return false, err
		}
		of = of || g.Post == got.Grant
	}
	if err == nil && (!of || got.Leaf != o.Key.Digest) {
		err = errForeign
	}
	return err == nil, err
}
