package remote

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"

	"github.com/stonelayer/stone/address"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// ledger has what the journal of a run knows about the steps that other processes do within leaves.
type ledger struct {
	recalling sync.Mutex
	recalled  bool

	mu     sync.Mutex
	noted  map[dag.ID]noted         // by the digests of steps that cost money
	before map[dag.ID]budget.Amount // spent earlier, by the digests of leaves that are entered again
}

type noted struct {
	attempts int
	done     bool
}

func (l *ledger) spentBefore(leaf dag.ID) budget.Amount {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.before[leaf]
}

// recall charges the run, once, with the costs of its leaves that its journal does not know, because
// the former process lost the run before they ended. That process may still live and grant slices,
// and workers may still spend the old ones. So recall first takes the next number: slices of lower
// numbers pay for nothing more, since a worker notes each attempt and then looks for a higher number.
func (d *desk) recall(ctx context.Context) error {
	d.ledger.recalling.Lock()
	defer d.ledger.recalling.Unlock()
	if d.ledger.recalled {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var err error
	if d.holder, err = note(ctx, d.board.PostHeld, d.run, holderKey, try{}); err != nil {
		return err
	}
	paid, err := d.paid(ctx, tryKey)
	if err != nil {
		return err
	}
	if len(paid) == 0 {
		d.ledger.recalled = true
		return nil
	}
	steps, err := d.cfg.Journal.Steps(ctx, d.run)
	if err != nil {
		return err
	}
	known := map[string]noted{}
	for _, s := range steps {
		known[s.Kind+" "+s.Path] = noted{s.Attempts, s.Recorded}
	}
	d.ledger.recalled = true
	for leaf, steps := range paid {
		for _, s := range steps {
			d.ledger.mu.Lock()
			d.ledger.noted[s.Key.Digest] = known[s.Key.Kind+" "+s.Key.Path]
			d.ledger.before[leaf] = d.ledger.before[leaf].Add(s.Spent())
			d.ledger.mu.Unlock()
		}
		spent, err := d.note(ctx, steps...)
		if err != nil {
			return err
		}
		budget.From(ctx).OfRun().Charge(spent)
	}
	return nil
}

// note imports steps without the attempts that the journal knows. It returns the cost of the other
// attempts.
func (d *desk) note(ctx context.Context, steps ...journal.DoneStep) (spent budget.Amount, err error) {
	var fresh []journal.DoneStep
	d.ledger.mu.Lock()
	for _, s := range steps {
		if s.Declared != (budget.Amount{}) {
			known := d.ledger.noted[s.Key.Digest]
			if known.done || s.Record == nil && known.attempts >= s.Attempts {
				continue
			}
			d.ledger.noted[s.Key.Digest] = noted{max(known.attempts, s.Attempts), s.Record != nil}
			s.Attempts = max(s.Attempts-known.attempts, min(s.Attempts, 1))
			spent = spent.Add(s.Spent())
		}
		fresh = append(fresh, s)
	}
	d.ledger.mu.Unlock()
	return spent, journal.Import(ctx, fresh...)
}

// revoke closes the slice of an order for which nobody waits any more, and settles it with the cost
// of the leaf. Before it starts a step that costs money, a worker notes the attempt and then looks
// for a closed slice. So either the worker finds the closed slice, or revoke finds the note. If the
// journal fails, the slice stays reserved, since its cost is unknown.
func (d *desk) revoke(ctx context.Context, p *pending) error {
	d.mu.Lock()
	out := p.out
	d.mu.Unlock()
	if out == nil {
		p.slice.cancel()
		return nil
	}
	<-out
	ctx = context.WithoutCancel(ctx)
	leaf := p.order.Key.Digest
	if err := p.slice.post(ctx, d, leaf, grant{Holder: d.holder, Post: rand.Text(), Closed: true}); err != nil {
		return err
	}
	paid, err := d.paid(ctx, tryKey+leaf.String()+"/")
	if err != nil {
		return err
	}
	var spent budget.Amount
	for _, s := range paid[leaf] {
		spent = spent.Add(s.Spent())
	}
	if _, err := d.note(ctx, paid[leaf]...); err != nil {
		return err
	}
	d.ledger.mu.Lock()
	d.ledger.before[leaf] = spent
	d.ledger.mu.Unlock()
	p.slice.settle(spent)
	return nil
}

// paid returns, by leaf, the steps that cost money and have attempts on the board whose keys have the
// prefix. An attempt without a result may have cost as much as it declared.
func (d *desk) paid(ctx context.Context, prefix string) (map[dag.ID][]journal.DoneStep, error) {
	type place struct{ leaf, step dag.ID }
	started := map[place]*journal.DoneStep{}
	var keys []string
	for item, err := range d.posted(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		var t try
		if err := read(item, &t); err != nil {
			return nil, err
		}
		if t.Key == nil {
			continue // of work
		}
		digest, _, _ := strings.Cut(strings.TrimPrefix(item.Key, tryKey), "/")
		leaf, err := dag.ParseID(digest)
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", item.Key, err)
		}
		at := place{leaf, t.Key.Digest}
		if started[at] == nil {
			started[at] = &journal.DoneStep{Key: *t.Key, Declared: t.Declared}
			keys = append(keys, stepKey+t.Key.Digest.String())
		}
		started[at].Attempts++
	}
	if len(keys) == 0 {
		return nil, nil
	}
	items, err := d.board.Posted(ctx, d.run, keys...)
	if err != nil {
		return nil, err
	}
	steps := map[dag.ID][]journal.DoneStep{}
	for at, s := range started {
		if found, ok := items[stepKey+at.step.String()]; ok {
			attempts := s.Attempts
			if err := read(found, s); err != nil {
				return nil, err
			}
			s.Attempts = max(s.Attempts, attempts)
		}
		steps[at.leaf] = append(steps[at.leaf], *s)
	}
	return steps, nil
}

// bring records the steps within a leaf that other processes have done.
func (d *desk) bring(ctx context.Context, leaf string, got result) error {
	steps, err := d.stepsOf(ctx, leaf, got)
	if err != nil || len(steps) == 0 {
		return err
	}
	_, err = d.note(ctx, steps...)
	return err
}

func (d *desk) stepsOf(ctx context.Context, leaf string, got result) (steps []journal.DoneStep, err error) {
	if got.Given {
		return d.stepsIn(ctx, leaf)
	}
	if len(got.Steps) == 0 {
		return nil, nil
	}
	keys := make([]string, len(got.Steps))
	for i, digest := range got.Steps {
		keys[i] = stepKey + digest.String()
	}
	items, err := d.board.Posted(ctx, d.run, keys...)
	if err != nil {
		return nil, err
	}
	steps = make([]journal.DoneStep, len(keys))
	for i, key := range keys {
		if err := read(items[key], &steps[i]); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// stepsIn returns the steps on the board that are within a leaf.
func (d *desk) stepsIn(ctx context.Context, leaf string) (steps []journal.DoneStep, err error) {
	for item, err := range d.posted(ctx, stepKey) {
		if err != nil {
			return nil, err
		}
		var s journal.DoneStep
		if err := read(item, &s); err != nil {
			return nil, err
		}
		if address.Within(s.Key.Path, leaf) {
			steps = append(steps, s)
		}
	}
	return steps, nil
}
