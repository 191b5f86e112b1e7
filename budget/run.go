package budget

// A bill is the spending of a run, including the part that is only estimated.
type bill struct {
	spent Amount
	held  Possible
}

// Earlier is the spending of a run in earlier processes. The zero value means that they have spent nothing.
type Earlier struct {
	Spent Amount
	Held  Possible // the part of Spent that is only estimated
	// Below returns the recorded usage of the steps below a path. It is nil if no usage is recorded.
	Below func(path string) Usage
}

// Run returns an account under a for one run. It charges a with the amount that earlier processes have spent on the run, unless a
// has already been charged with it. The same account a can thus be used every time the run is resumed. Run does not charge the
// accounts above this one for the spending of other processes.
//
// If a is nil, Run returns nil.
func (a *Account) Run(id string, earlier Earlier) *Account {
	if a == nil {
		return nil
	}
	sub := a.Sub(Limits{})
	sub.run, sub.below = true, earlier.Below
	a.mu.Lock()
	defer a.mu.Unlock()
	before, held, known := earlier.Spent.sane(), earlier.Held, a.runs[id]
	missing := bill{
		before.without(known.spent),
		Possible{max(held.Attempts-known.held.Attempts, 0), max(held.Tokens-known.held.Tokens, 0), max(held.USD-known.held.USD, 0)},
	}
	a.spent, a.held = a.spent.Add(missing.spent), a.held.Add(missing.held)
	if a.runs == nil {
		a.runs = map[string]bill{}
	}
	a.runs[id] = bill{known.spent.Add(missing.spent), known.held.Add(missing.held)}
	return sub
}

// Leave closes an account returned by Run. If over is true, the run cannot be resumed, and the account above forgets the run's
// spending.
func (a *Account) Leave(id string, over bool) {
	if a == nil || !a.run {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if over {
		delete(a.above.runs, id)
		return
	}
	known := a.above.runs[id]
	a.above.runs[id] = bill{known.spent.Add(a.spent), known.held.Add(a.held)}
}

// Adopt is like Draw, but for a step, such as a remote run, that an earlier process started and that continued without that
// process. The amount that was charged for the lost attempt pays for the step, so Adopt never rejects it.
func (a *Account) Adopt(run string, q Quote) *Draw {
	d := &Draw{account: a, quote: q, lost: q.Most.sane()}
	if a == nil {
		return d
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	d.reserved = a.grant(q)
	if own := a.OfRun(); own.run {
		charged, known := own.above, own.above.runs[run]
		charged.spent, charged.held = charged.spent.without(d.lost), charged.held.End(d.lost)
		charged.runs[run] = bill{known.spent.without(d.lost), known.held.End(d.lost)}
	}
	return d
}

// without returns m minus n, or zero where the difference would be negative.
func (m Amount) without(n Amount) Amount {
	return Amount{m.Roundtrips - n.Roundtrips, m.Tokens - n.Tokens, m.USD - n.USD}.sane()
}

// OfRun returns the account of the whole run to which a belongs, or a itself if Run has made neither a nor an account above it.
// The earlier spending of a resumed run is charged to that account.
func (a *Account) OfRun() *Account {
	for up := a; up != nil; up = up.above {
		if up.run {
			return up
		}
	}
	return a
}

// Replay charges a recorded amount to a and the accounts above it, up to but not including the run's account, which has already
// been charged with the run's earlier spending.
func (a *Account) Replay(amount Amount) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	amount = amount.sane()
	for ; a != nil && !a.run; a = a.above {
		a.spent = a.spent.Add(amount)
	}
}
