package stone

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/kind"
)

// Each form of ashlar has its own type of options, so the compiler rejects an option that does not apply.
type (
	// A LeafOption configures a leaf made by New, Func, Leaf or another package. An Ask is a leaf too.
	LeafOption interface {
		AskOption
		leaf()
	}
	// An AskOption configures an Ask.
	AskOption interface {
		apply(*spec)
		ask()
	}
	// A FanOption configures a fan-out: a Map or a Parallel.
	FanOption interface {
		FanPart
		apply(*spec)
	}
	// A FanPart is an argument of Parallel: an Ashlar, which is a lane, or a
	// FanOption.
	FanPart interface{ fanPart(*spec) }
)

type (
	leafOption func(*spec)
	askOption  func(*spec)
	fanOption  func(*spec)
)

func (o leafOption) apply(s *spec) { o(s) }
func (leafOption) ask()            {}
func (leafOption) leaf()           {}

func (o askOption) apply(s *spec) { o(s) }
func (askOption) ask()            {}

func (o fanOption) apply(s *spec)   { o(s) }
func (o fanOption) fanPart(s *spec) { o(s) }

func (a Ashlar) fanPart(s *spec) { s.children = append(s.children, a) }

// settings contains the fields that options set, except queries and produced types.
type settings struct {
	version  string
	reusable bool
	effects  []string
	retry    *Retry
	timeout  time.Duration
	detail   *Detail

	mayDecline bool // for an Ask: a person may cancel the question
}

// with applies the options to s.
func with[O interface{ apply(*spec) }](s *spec, opts []O) *spec {
	for _, o := range opts {
		if any(o) == nil {
			s.fault("bad-option", "one of its options is nil: remove it")
			continue
		}
		o.apply(s)
	}
	return s
}

// fault stores a mistake in the construction of s, which Validate reports.
func (s *spec) fault(typ string, format string, args ...any) {
	s.faults = append(s.faults, Finding{Type: typ, Ashlar: s.name, Message: fmt.Sprintf(format, args...)})
}

// Queries declares the reads of a body: a type for its nearest node, and dag.All, dag.Since, dag.Latest, dag.Maybe and
// dag.Everything for other reads. An undeclared read fails the leaf with kind "undeclared-query".
func Queries(qs ...dag.Querier) LeafOption {
	return leafOption(func(s *spec) {
		s.queries = append(s.queries, dag.Types(qs...)...)
	})
}

// Version sets a leaf's version. If the version changes, other runs do not reuse recorded results of the leaf, and a run that was
// started with the old version cannot be resumed.
func Version(v string) LeafOption {
	return leafOption(func(s *spec) { s.version = v })
}

// Reusable lets a leaf take its result from an earlier run in which it read the same contents. Give the leaf a Version, and
// change it whenever the body changes. Every round of a loop, every visit and every lane has its own result, so that repeated
// samples stay separate. A lane of a Map is identified by its item. The body must not depend on node IDs or parents, which differ
// from run to run. A result is not reused if the body has called RunDynamic or Await.
func Reusable() LeafOption {
	return leafOption(func(s *spec) { s.reusable = true })
}

// Children gives a leaf ashlars that its body may run with RunChild, such as judges and helpers. Their nodes do not stay in the
// DAG. The children see a draft: a node of the type that the leaf produces, or nodes of the types that the walk's Writes lists.
// The walk is used as in Scoped.
func Children(walk Walk) LeafOption {
	return leafOption(func(s *spec) { s.walk, s.children = walk, walk.children() })
}

// Effects declares a leaf's effects on the world; see package effect. A run with a grant rejects a pipeline that needs other
// effects. Without arguments, Effects declares that the leaf has no effects. The effects of a leaf without this option are
// unknown; see [Ashlar.Undeclared].
func Effects(effects ...string) LeafOption {
	return leafOption(func(s *spec) { s.effects = append(stated(s.effects), effects...) })
}

// stated returns list or, if list is nil, an empty slice that is not nil.
func stated(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Retry is an option that retries a leaf when it fails:
//
//	stone.Retry{Attempts: 3, Backoff: time.Second}
//
// It never repeats a leaf that was canceled or is waiting for an answer, that made an undeclared query or returned bad content,
// or whose input is missing. The error of the body, or one that it wraps, controls retries with these optional methods:
//
//   - Retryable() bool: returns false if another attempt cannot succeed, for example because of a wrong key or an exhausted
//     budget.
//   - RetryAfter() time.Duration: returns the minimum pause. If that exceeds an hour, the leaf fails.
//   - Attempts() int: returns the number of attempts already made for this error, at least one. They count towards the limit: if
//     the limit is three, a model that was already tried four times is not called again.
type Retry struct {
	Attempts int         // maximum number of attempts, including the first; less than 2 means one
	Kinds    []kind.Kind // kinds of failures to retry; empty means all
	// Backoff is the pause before the second attempt. It doubles before each
	// further attempt, up to 30 s. The actual pause is random, at least half of that.
	Backoff time.Duration
}

func (r Retry) apply(s *spec) {
	s.retry = &r
	if r.Attempts < 0 || r.Backoff < 0 {
		s.fault("bad-option", "Retry: Attempts is %d and Backoff %v: neither may be negative", r.Attempts, r.Backoff)
	}
	for _, k := range r.Kinds { // a kind that Stone does not define may be defined by the program
		if near := suggest.Closest(string(k), slices.Values(ownKinds)); near != "" && near != string(k) {
			s.faults = append(s.faults, Finding{Type: "unknown-kind", Warning: true, Ashlar: s.name, Message: fmt.Sprintf("Retry: unknown failure kind %q", k), Suggestion: near})
		}
	}
}

// ownKinds contains the failure kinds defined by Stone that a retry of a leaf may overcome.
var ownKinds = []string{string(kind.Error), string(kind.Panic), string(kind.Timeout), string(kind.BadContent), string(kind.Unanswered), string(kind.LoopExhausted), string(kind.LanesFailed)}

func (Retry) ask()  {}
func (Retry) leaf() {}

// Timeout limits the duration of one attempt at a leaf; d must be positive. After d its context is canceled, and a body that
// returns an error fails with kind "timeout". A result that the body returns within one more second is kept, since it may have
// been paid for. After that second, the leaf fails and the run continues without the body: its goroutine keeps running, and its
// result is dropped.
func Timeout(d time.Duration) LeafOption {
	return leafOption(func(s *spec) {
		s.timeout = d
		if d <= 0 {
			s.fault("bad-option", "Timeout(%v): want more than zero", d)
		}
	})
}

// restoreAs decodes a recorded decision as a T.
func restoreAs[T any](raw json.RawMessage) (any, error) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err
}

// Lanes limits how many lanes of a fan-out run at once; n must be at least 1. The default is 256. All fan-outs of a run together
// run at most 4,096 lanes at once.
func Lanes(n int) FanOption {
	return fanOption(func(s *spec) {
		s.lanes = n
		if n < 1 {
			s.fault("bad-option", "Lanes(%d): want at least 1", n)
		}
	})
}

// AllowEmpty lets a Map succeed without items. Such a Map runs no lane, and dag.All finds no nodes. Without this option, such a Map
// fails with kind "map-empty".
func AllowEmpty() FanOption {
	return fanOption(func(s *spec) {
		s.allowEmpty = true
		if s.form != mapForm {
			s.fault("bad-option", "AllowEmpty: a parallel has as many lanes as it is given, remove the option")
		}
	})
}

// Quorum makes a fan-out fail with kind "lanes-failed" if fewer than n of its lanes succeed; n must be at least 1. The default is
// 1.
func Quorum(n int) FanOption {
	return fanOption(func(s *spec) {
		s.quorum = n
		if n < 1 {
			s.fault("bad-option", "Quorum(%d): want at least 1", n)
		}
	})
}

// AllLanes makes a fan-out fail with kind "lanes-failed" if any of its lanes fails.
func AllLanes() FanOption {
	return fanOption(func(s *spec) { s.allLanes = true })
}
