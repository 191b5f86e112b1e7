package budget

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MarshalJSON returns an object with the limits that are not nil. Negative limits are written as 0.
func (l Limits) MarshalJSON() ([]byte, error) {
	out := map[string]any{}
	if l.Roundtrips != nil {
		out["max-roundtrips"] = max(*l.Roundtrips, 0)
	}
	if l.Tokens != nil {
		out["max-tokens"] = max(*l.Tokens, 0)
	}
	if l.USD != nil {
		out["max-usd"] = max(*l.USD, 0)
	}
	if l.Latency != nil {
		out["latency-ms"] = milliseconds(max(*l.Latency, 0))
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads an object in the form that MarshalJSON writes. It rejects unknown members, because a misspelt limit would
// limit nothing.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var in struct {
		Roundtrips *int         `json:"max-roundtrips"`
		Tokens     *int         `json:"max-tokens"`
		USD        *float64     `json:"max-usd"`
		Latency    *json.Number `json:"latency-ms"`
	}
	from := json.NewDecoder(bytes.NewReader(data))
	from.DisallowUnknownFields()
	if err := from.Decode(&in); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	*l = Limits{Roundtrips: in.Roundtrips, Tokens: in.Tokens, USD: in.USD}
	if in.Latency == nil {
		return nil
	}
	latency, err := duration(in.Latency.String())
	l.Latency = &latency
	return err
}

// milliseconds returns the exact number of milliseconds in d.
func milliseconds(d time.Duration) json.Number {
	whole := strconv.FormatInt(int64(d/time.Millisecond), 10)
	if rest := d % time.Millisecond; rest != 0 {
		return json.Number(strings.TrimRight(fmt.Sprintf("%s.%06d", whole, rest), "0"))
	}
	return json.Number(whole)
}

// duration converts a number of milliseconds, given as text, to a time.Duration.
func duration(ms string) (time.Duration, error) {
	d, err := time.ParseDuration(ms + "ms")
	if err == nil {
		return d, nil
	}
	n, err := strconv.ParseFloat(ms, 64) // the number has an exponent or is too large
	if n *= float64(time.Millisecond); err != nil || n >= math.MaxInt64 {
		return 0, fmt.Errorf("latency-ms %s: want at most %s", ms, milliseconds(math.MaxInt64))
	}
	return time.Duration(max(n, 0)), nil
}
