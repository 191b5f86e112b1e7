package budget

import "math"

// Usage is the number of tokens that models have read and written, and the cost in USD.
type Usage struct {
	InputTokens      int     `json:"input-tokens,omitempty"` // including tokens read from or written to a cache
	OutputTokens     int     `json:"output-tokens,omitempty"`
	CacheReadTokens  int     `json:"cache-read-tokens,omitempty"`  // included in InputTokens
	CacheWriteTokens int     `json:"cache-write-tokens,omitempty"` // included in InputTokens
	USD              float64 `json:"usd,omitempty"`
	// Estimated reports that part of the usage is estimated: no server reported it, for example after a stream was cut off.
	Estimated bool `json:"estimated,omitempty"`
}

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	u, v = u.Sane(), v.Sane()
	return Usage{
		InputTokens:      add(u.InputTokens, v.InputTokens),
		OutputTokens:     add(u.OutputTokens, v.OutputTokens),
		CacheReadTokens:  add(u.CacheReadTokens, v.CacheReadTokens),
		CacheWriteTokens: add(u.CacheWriteTokens, v.CacheWriteTokens),
		USD:              min(u.USD+v.USD, maxUSD),
		Estimated:        u.Estimated || v.Estimated,
	}
}

// Sane returns a copy of u that can be recorded and cannot reduce an account's spending: negative fields become zero.
func (u Usage) Sane() Usage {
	if !(u.USD >= 0) {
		u.USD = 0
	}
	u.USD = min(u.USD, maxUSD)
	u.InputTokens, u.OutputTokens = max(u.InputTokens, 0), max(u.OutputTokens, 0)
	u.CacheReadTokens, u.CacheWriteTokens = max(u.CacheReadTokens, 0), max(u.CacheWriteTokens, 0)
	return u
}

// Tokens returns the number of input and output tokens.
func (u Usage) Tokens() int { return add(max(u.InputTokens, 0), max(u.OutputTokens, 0)) }

// Amount returns the amount to take from an account for the usage. It includes no round trip.
func (u Usage) Amount() Amount { return Amount{Tokens: u.Tokens(), USD: u.USD}.sane() }

// maxUSD is larger than any real cost, but small enough that sums do not overflow.
const maxUSD = math.MaxFloat64 / 1e6
