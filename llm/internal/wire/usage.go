package wire

import (
	"encoding/json"
	"math"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/llm"
)

// Counts is an object of numbers, such as an answer's usage. A malformed field does not affect the others.
type Counts map[string]json.RawMessage

// ReadCounts reads an object of numbers. For anything else, it returns no counts.
func ReadCounts(raw json.RawMessage) Counts {
	if len(raw) == 0 || raw[0] != '{' { // most events contain no usage
		return nil
	}
	var c Counts
	if jsonv2.UnmarshalLenient(raw, &c) != nil {
		return nil
	}
	return c
}

// In returns the object in the named field.
func (c Counts) In(name string) Counts { return ReadCounts(c[name]) }

// Known returns the number in a field, or nil. Some servers write token counts as fractions.
func (c Counts) Known(name string) *int {
	raw := c[name]
	if len(raw) == 0 || raw[0] == 'n' {
		return nil
	}
	var f float64
	if jsonv2.UnmarshalLenient(raw, &f) != nil || f < 0 || f > math.MaxInt32 {
		return nil
	}
	return new(int(f))
}

// Of returns the largest number in the named fields.
func (c Counts) Of(names ...string) (most int) {
	for _, name := range names {
		if n := c.Known(name); n != nil {
			most = max(most, *n)
		}
	}
	return most
}

// Larger returns the larger numbers of two reports about one answer, because the last report of a server may contain zeros.
func Larger(a, b llm.Usage) llm.Usage {
	b.InputTokens, b.OutputTokens = larger(a.InputTokens, b.InputTokens), larger(a.OutputTokens, b.OutputTokens)
	b.CachedInputTokens, b.CacheWriteTokens = max(a.CachedInputTokens, b.CachedInputTokens), max(a.CacheWriteTokens, b.CacheWriteTokens)
	b.CacheHourTokens, b.Searches = max(a.CacheHourTokens, b.CacheHourTokens), max(a.Searches, b.Searches)
	if a.ReasoningTokens > b.ReasoningTokens {
		b.ReasoningTokens, b.ReasoningApart = a.ReasoningTokens, a.ReasoningApart
	}
	return b
}

func larger(a, b *int) *int {
	if a == nil || b != nil && *b >= *a {
		return b
	}
	return a
}
