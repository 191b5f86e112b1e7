package cli

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/stonelayer/stone/budget"
)

// A quantity is the value of a flag that limits or counts. It is nil until the flag is set, unless it has a default.
type quantity[N int | float64 | time.Duration] struct {
	to    **N
	least N
}

// most is the value of a flag that limits: its absence means unlimited, and 0 means nothing.
func most[N int | float64 | time.Duration](to **N) *quantity[N] { return &quantity[N]{to: to} }

// count is the value of a flag that counts work, so 0 would mean no work.
func count(to *int) *quantity[int] { return &quantity[int]{&to, 1} }

func (n *quantity[N]) String() string {
	if n.to == nil || *n.to == nil {
		return ""
	}
	if f, ok := any(**n.to).(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(**n.to)
}

func (n *quantity[N]) Set(text string) (err error) {
	var v N
	switch to := any(&v).(type) {
	case *int:
		*to, err = strconv.Atoi(text)
	case *float64:
		*to, err = strconv.ParseFloat(text, 64)
	case *time.Duration:
		*to, err = time.ParseDuration(text)
	}
	switch {
	case err != nil:
		return err
	case n.least > 0 && v < n.least:
		return outOfRange(fmt.Sprintf("want %v or more, or leave the flag out", n.least))
	case !(v >= 0) || math.IsInf(float64(v), 1):
		return outOfRange("want 0 or more")
	case *n.to == nil:
		*n.to = new(N)
	}
	**n.to = v
	return nil
}

// Type is as of a flag of pflag, see flagError.
func (n *quantity[N]) Type() string {
	if _, ok := any(n.least).(time.Duration); ok {
		return "duration"
	}
	return fmt.Sprintf("%T", n.least)
}

// An outOfRange is the error of a number that its flag does not take.
type outOfRange string

func (e outOfRange) Error() string { return string(e) }

// over returns the limits that flags set, and otherwise others.
func over(flags, others budget.Limits) budget.Limits {
	return budget.Limits{
		Roundtrips: cmp.Or(flags.Roundtrips, others.Roundtrips), Tokens: cmp.Or(flags.Tokens, others.Tokens),
		USD: cmp.Or(flags.USD, others.USD), Latency: cmp.Or(flags.Latency, others.Latency),
	}
}
