package budget

// A Total is the total usage of the steps of a run.
type Total struct {
	Usage             // the usage of results and failures
	Possible Possible `json:"possible,omitzero"`
}

// Add returns the sum.
func (t Total) Add(u Total) Total {
	return Total{t.Usage.Add(u.Usage), t.Possible.Add(u.Possible)}
}

// Amount returns the amount to take from an account for the total, without round trips: the usage and the estimates of attempts
// that may have been billed.
func (t Total) Amount() Amount {
	return t.Usage.Amount().Add(Amount{Tokens: t.Possible.Tokens, USD: t.Possible.USD})
}

// Possible is the total of those attempts at costly steps that may have been billed: they have started, but have neither a result
// nor a known cost. Tokens and USD are the estimates that the attempts have declared.
type Possible struct {
	Attempts int     `json:"attempts"`
	Tokens   int     `json:"tokens,omitempty"`
	USD      float64 `json:"usd,omitempty"`
}

// Start adds an attempt with a declared cost. An attempt that has declared nothing does not count.
func (p Possible) Start(declared Amount) Possible {
	if declared = declared.sane(); declared == (Amount{}) {
		return p
	}
	return p.Add(Possible{1, declared.Tokens, declared.USD})
}

// End removes an attempt whose cost is now known.
func (p Possible) End(declared Amount) Possible {
	switch declared = declared.sane(); {
	case declared == (Amount{}):
		return p
	case p.Attempts <= 1:
		return Possible{} // avoids the rounding error of a difference
	}
	return Possible{p.Attempts - 1, max(p.Tokens-declared.Tokens, 0), max(p.USD-declared.USD, 0)}
}

// Add returns the sum.
func (p Possible) Add(q Possible) Possible {
	return Possible{add(p.Attempts, q.Attempts), add(p.Tokens, q.Tokens), min(p.USD+q.USD, maxUSD)}
}
