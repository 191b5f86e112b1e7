package budget

// Run returns an account for one run, under this one. It charges this account with the
// amount that the run has spent before, unless that was charged already, so the same
// account may be used for every resume. It does not charge the accounts above this one
// with spending of other processes.
//
// Under a nil account it returns nil.
func (a *Account) Run(id string, before Amount) *Account {
	if a == nil {
		return nil
	}
	sub := a.Sub(Limits{})
	sub.run = true
	a.mu.Lock()
	defer a.mu.Unlock()
	before, known := before.sane(), a.runs[id]
	missing := Amount{before.Roundtrips - known.Roundtrips, before.Tokens - known.Tokens, before.USD - known.USD}.sane()
	a.spent = a.spent.Add(missing)
	if a.runs == nil {
		a.runs = map[string]Amount{}
	}
	a.runs[id] = known.Add(missing)
	return sub
}

// Leave closes the account of a run, which Run returned. If the run is over, it cannot be
// resumed, and its spending need not be remembered.
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
	a.above.runs[id] = a.above.runs[id].Add(a.spent)
}

// OfRun returns the account of the run that a belongs to, or a if there is none. The earlier
// spending of a resumed run is charged to that account.
func (a *Account) OfRun() *Account {
	for up := a; up != nil; up = up.above {
		if up.run {
			return up
		}
	}
	return a
}

// Replay charges a recorded amount to a and the accounts above it, up to but not including that
// of the run, which has already been charged with everything that the run spent before.
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
