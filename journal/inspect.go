package journal

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
)

// An Inspector shows parts of a run: its current activity, one level of the tree, one
// node. A page about a large run needs no more.
type Inspector interface {
	// Follow yields the rows of a run after a position, 0 for all, without contents. While
	// this process or another one holds the run, it waits for more. It returns when the
	// run has no holder and every row was yielded. An error is the last thing it yields:
	// ErrNoRun, the cause of ctx, or an error of the store. The caller may stop early and
	// follow again after the Seq of its last row.
	Follow(ctx context.Context, run string, after int64) iter.Seq2[Row, error]
	// Last returns a position after which Follow yields what happens to a run from now on: no
	// row that it has is after it. The error is ErrNoRun, or one of the store.
	Last(ctx context.Context, run string) (int64, error)
	// Outline returns the branches right below a path in the order in which they
	// started, those of the whole run for "". It reads no contents. See Branches.
	Outline(ctx context.Context, run, path string) ([]Branch, error)
	// Node returns the node of the run with the id in hexadecimal digits, or the only one
	// whose id begins with prefix. It finds the nodes that steps made, their ancestors,
	// and the nodes of the DAG with which the run ended. The error is ErrNoNode or an
	// *AmbiguousError.
	Node(ctx context.Context, run, prefix string) (NodeInfo, error)
}

// ErrNoNode means that a run has no node with the id.
var ErrNoNode = errors.New("no such node in the run")

// A Row records the start of a step, or its end.
type Row struct {
	Seq     int64        `json:"seq"` // its position: later rows of a run have larger ones, not necessarily the next ones
	Path    string       `json:"path"`
	Kind    string       `json:"kind"`
	Name    string       `json:"name"`
	Time    time.Time    `json:"time"`
	Ended   bool         `json:"ended"`          // the step ended; false if it started
	From    string       `json:"from,omitempty"` // as the rest in Step, of a step that ended
	Type    string       `json:"type,omitempty"`
	Node    dag.ID       `json:"node,omitzero"`
	Failure string       `json:"failure,omitempty"`
	Reason  string       `json:"reason,omitempty"`
	Usage   budget.Usage `json:"usage,omitzero"` // of this attempt alone
}

// NodeInfo is a node as a journal keeps it.
type NodeInfo struct {
	ID      dag.ID            `json:"id"`
	Type    string            `json:"type"`
	Parents []dag.ID          `json:"parents,omitempty"`
	Content json.RawMessage   `json:"content"`
	Meta    map[string]string `json:"meta,omitempty"`
	Time    time.Time         `json:"time,omitzero"`
}

// A Branch sums up the steps at a path and below it.
type Branch struct {
	Path     string       `json:"path"`
	Step     *Step        `json:"step,omitempty"`   // at the path itself, nil for a part that has steps only below
	Below    int          `json:"below"`            // steps below the path
	Recorded int          `json:"recorded"`         // steps that have a result, here and below
	Open     int          `json:"open"`             // steps without a result
	Failed   int          `json:"failed"`           // steps with a failure as result
	Started  time.Time    `json:"started,omitzero"` // of the first step
	Ended    time.Time    `json:"ended,omitzero"`   // of the last step
	Usage    budget.Usage `json:"usage,omitzero"`   // of all steps
}

// Branches sums up the steps right below a path: children, rounds, lanes, branches and
// attempts are levels of their own. It is meant for implementations of Outline.
func Branches(steps iter.Seq[Step], path string) []Branch {
	var out []Branch
	index := map[string]int{}
	for s := range steps {
		at := below(path, s.Path)
		if at == "" {
			continue
		}
		i, known := index[at]
		if !known {
			i = len(out)
			index[at], out = i, append(out, Branch{Path: at})
		}
		out[i].add(s)
	}
	return out
}

func (b *Branch) add(s Step) {
	if s.Path == b.Path {
		own := s
		b.Step = &own
	} else {
		b.Below++
	}
	switch {
	case !s.Recorded:
		b.Open++
	case s.Failure != "":
		b.Failed++
		fallthrough
	default:
		b.Recorded++
	}
	if b.Started.IsZero() || s.Started.Before(b.Started) {
		b.Started = s.Started
	}
	if s.Ended.After(b.Ended) {
		b.Ended = s.Ended
	}
	b.Usage = b.Usage.Add(s.Usage)
}

// below returns the path one level below path that leads to inner, "" if inner is
// not below path.
func below(path, inner string) string {
	rest, ok := strings.CutPrefix(inner, path)
	if !ok || rest == "" || path != "" && strings.IndexByte("/[~", rest[0]) < 0 {
		return ""
	}
	end := strings.IndexAny(rest[1:], "/[~")
	if end < 0 {
		return inner
	}
	return path + rest[:1+end]
}
