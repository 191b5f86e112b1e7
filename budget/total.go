package budget

// A Total is the total usage of a run's steps.
type Total struct {
	Usage             // the known usage of steps with a result or a failure
	Possible Possible `json:"possible,omitzero"`
}

// Add returns the sum.
func (t Total) Add(u Total) Total {
	return Total{t.Usage.Add(u.Usage), t.Possible.Add(u.Possible)}
}

// Amount returns the amount to take from an account for the total: the usage and the estimates for attempts that may have been
// billed. It includes no round trips.
func (t Total) Amount() Amount {
	return t.Usage.Amount().Add(Amount{Tokens: t.Possible.Tokens, USD: t.Possible.USD})
}

// Possible is the total of the attempts that may have been billed: attempts at costly steps that have started but have neither a
// result nor a known cost. Tokens and USD are the sums of their declared estimates.
type Possible struct {
	Attempts int     `json:"attempts"`
	Tokens   int     `json:"tokens,omitempty"`
	USD      float64 `json:"usd,omitempty"`
}

// Start adds an attempt with a declared cost. An attempt without a declared cost does not count.
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
