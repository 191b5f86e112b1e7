package budget

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
)

// A Shared budget limits the total spending of many runs, in all processes that share a journal. Runs draw on the budgets listed
// in journal.Options.Budgets. A paid step starts only if three sums leave room for its maximum cost: the recorded spending of all
// processes in the period, the estimates of batches whose answers have not been read, and the estimates in flight in this
// process. Otherwise it is rejected at once.
//
// A single process thus stays within the limit, unless a step costs more than its quote. Several processes can exceed the limit
// by the amount of each other's estimates in flight. Spending in flight in a killed process is recorded when its run is resumed
// and ends. The Latency of Limits is ignored.
type Shared struct {
	Name string `json:"name"`
	Per  Period `json:"per,omitempty"`
	// Payer means that Name is the payer of runs. The budget then counts everything that the payer spends in a day, even in runs
	// that do not draw on the budget. Per must be Day.
	Payer  bool   `json:"payer,omitempty"`
	Limits Limits `json:"limits"`
}

// A Rule selects the runs that draw on a Shared budget. It selects a run if the run has all the Labels and, unless Pipeline is
// empty, the pipeline has that name.
type Rule struct {
	Shared
	Pipeline string
	Labels   map[string]string
}

// Drawn returns the budgets of the rules that select a run; the result is never nil. Several rules may name the same budget, for
// several pipelines.
func Drawn(rules []Rule, pipeline string, labels map[string]string) []Shared {
	of := []Shared{}
	for _, r := range rules {
		if r.Pipeline != "" && r.Pipeline != pipeline {
			continue
		}
		if !missing(r.Labels, labels) && !slices.ContainsFunc(of, func(o Shared) bool { return reflect.DeepEqual(o, r.Shared) }) {
			of = append(of, r.Shared)
		}
	}
	return of
}

func missing(want, labels map[string]string) bool {
	for name, value := range want {
		if got, ok := labels[name]; !ok || got != value {
			return true
		}
	}
	return false
}

// Check returns an error if a single run cannot draw on all of the given budgets.
func Check(of []Shared) error {
	for i, s := range of {
		switch from, _ := s.Per.Bounds(time.Now()); {
		case s.Name == "":
			return errors.New("a budget has no name: set one")
		case from.IsZero() && s.Per != "":
			return fmt.Errorf("%v: want %q, %q or none as its period", s, Day, Month)
		case s.Payer && s.Per != Day:
			return fmt.Errorf("%v: want %q as its period", s, Day)
		}
		if slices.ContainsFunc(of[:i], func(o Shared) bool { return o.counted() == s.counted() }) {
			return fmt.Errorf("%v is listed twice: list it once, with one limit", s)
		}
	}
	return nil
}

// counted returns a copy of the budget without its limits. It identifies the spending that the journal counts for the budget.
func (s Shared) counted() Shared {
	s.Limits = Limits{}
	return s
}

// A Period is the time after which a Shared budget is renewed. Days and months are in UTC. A
// step counts in the period in which its result is recorded. The empty Period never ends.
type Period string

// The periods of a budget.
const (
	Day   Period = "day"
	Month Period = "month"
)

// Bounds returns the start of the period that contains the time t and the start of the next period. For the empty Period, both
// are zero.
func (p Period) Bounds(at time.Time) (from, to time.Time) {
	at = at.UTC()
	switch p {
	case Day:
		from = time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
		return from, from.AddDate(0, 0, 1)
	case Month:
		from = time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
		return from, from.AddDate(0, 1, 0)
	}
	return from, to
}

// forever is the day under which budgets that are never renewed are counted. Journals delete the sums of past days, and thus
// never this sum.
const forever = math.MaxInt32

// Key returns the account under which a journal counts the budget, and the Unix day on which the period of a time begins.
func (s Shared) Key(at time.Time) (account string, day int64) {
	day = forever
	if from, _ := s.Per.Bounds(at); !from.IsZero() {
		day = from.Unix() / int64(24*time.Hour/time.Second)
	}
	if s.Payer {
		return s.Name, day
	}
	return "\x1f" + string(s.Per) + "\x1f" + s.Name, day
}

// A Balance is the state of a Shared budget in a period.
type Balance struct {
	Shared
	Used   Amount    `json:"used"`            // the recorded spending, including the estimates for lost attempts
	Held   Amount    `json:"held"`            // the estimates of steps in flight in this process and of unread batches
	Renews time.Time `json:"renews,omitzero"` // the time at which the budget is renewed; zero means never
}

// Left returns the amount that the budget can still pay in the period.
func (b Balance) Left() Limits {
	a := Account{tree: new(tree), limits: b.Limits, spent: b.Used.Add(b.Held)}
	a.limits.Latency = nil
	return a.Left()
}

// Pays returns nil if the budget can pay the maximum cost of a step; otherwise, it returns an *UnpricedError or an
// *ExhaustedError.
func (b Balance) Pays(q Quote) error {
	if q.Unpriced != "" && b.Limits.USD != nil {
		return &UnpricedError{Model: q.Unpriced}
	}
	most := q.Most.sane()
	a := Account{limits: b.Limits, spent: b.Used.Add(b.Held)}
	a.limits.Latency = nil
	limit := a.exceeded(most, time.Time{})
	if limit == "" {
		return nil
	}
	e := &ExhaustedError{Limit: limit, Shared: &b}
	switch limit {
	case "max-usd":
		e.Spent, e.Held, e.Max, e.Needs = b.Used.USD, b.Held.USD, *b.Limits.USD, most.USD
	case "max-tokens":
		e.Spent, e.Held, e.Max, e.Needs = float64(b.Used.Tokens), float64(b.Held.Tokens), float64(*b.Limits.Tokens), float64(most.Tokens)
	default:
		e.Spent, e.Held, e.Max, e.Needs = float64(b.Used.Roundtrips), float64(b.Held.Roundtrips), float64(*b.Limits.Roundtrips), float64(most.Roundtrips)
	}
	e.Max = max(e.Max, 0)
	return e
}

// String returns the name of the budget and its period.
func (s Shared) String() string {
	name := fmt.Sprintf("budget %q", s.Name)
	if s.Payer {
		name = fmt.Sprintf("limit of %q", s.Name)
	}
	if s.Per != "" {
		name += " of this " + string(s.Per)
	}
	return name
}

// shared returns the error text for an exhausted Shared budget.
func (e *ExhaustedError) shared() string {
	text := fmt.Sprintf("%s: %s has no room for a step of up to %s: used %s, in flight %s, %s %s", Kind, e.Shared.Shared, e.amount(e.Needs),
		e.amount(e.Spent), e.amount(e.Held), e.Limit, e.exact(e.Max))
	if r := e.Shared.Renews; !r.IsZero() {
		text += ", renewed on " + r.UTC().Format("2006-01-02 15:04 UTC")
	}
	if e.Shared.Payer {
		return text + ": continue after that, or use a token with a higher --max-usd-a-day"
	}
	return text + ": raise it in :budgets of .stone/stone.edn, or resume the run later"
}
