package budget

// Run returns the account on which a run that is resumed draws. It stands under
// this one, which is charged with what the run has spent before, unless it was
// charged already: the same account can be given to the run each time. Accounts
// above this one are not charged with what other processes spent.
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

// Leave ends the account of a run, which Run returned. A run that is over cannot
// be resumed, and nothing is remembered of it.
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

// replay charges what is replayed, but not the account of the run, which has been
// charged with all that the run spent before, nor those above it.
func (a *Account) replay(amount Amount) {
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
