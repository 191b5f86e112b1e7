package call

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/terms"
)

// A Record describes a finished call. It is stored as JSON under MetaKey in the meta of the call's node, or of its failure.
type Record struct {
	Intent   string   `json:"intent,omitempty"`
	Cap      string   `json:"cap/id,omitempty"` // the capability that answered or was invoked last
	Version  string   `json:"cap/version,omitempty"`
	Attempts int      `json:"attempts"`       // the number of all invocations, including repairs
	Plan     bool     `json:"plan,omitempty"` // whether the answer was a plan
	Failure  string   `json:"failure/type,omitempty"`
	Error    string   `json:"error,omitempty"`
	Out      JSON     `json:"out,omitempty"` // a rejected out; an accepted out is the node's content
	Score    *float64 `json:"score,omitempty"`
	// MustFailed and ShouldFailed are the failed checks of the attempt that counts.
	MustFailed   []string    `json:"must-failed,omitempty"`
	ShouldFailed []string    `json:"should-failed,omitempty"`
	Rejected     []Rejection `json:"rejected,omitempty"`
	// Disagreed is the reason why the first candidates of an agreement did not agree.
	Disagreed string     `json:"disagreed,omitempty"`
	Input     *Admission `json:"input,omitempty"` // the verdict on the input; nil if the input is not checked
	Tried     []Attempt  `json:"tried,omitempty"` // ordered by candidate, then by number
	Usage     Usage      `json:"usage,omitzero"`
	// Strategy is Cascade, Tournament, Race or Agreement. It is empty if the call failed before a capability was invoked. The
	// content of a node of type Failed does not contain it.
	Strategy string `json:"-"`
	// From is the run from which the answer was taken; see Cache. Usage is then zero, and the other fields describe that run.
	From string `json:"from,omitempty"`
}

// A Rejection describes a candidate that was not invoked and the first test that it failed.
type Rejection struct {
	Cap    string `json:"cap/id"`
	Reason string `json:"reason"` // such as "requires/cap-kind-mismatch"
}

// An Attempt is one invocation.
type Attempt struct {
	Cap          string   `json:"cap/id"`
	Version      string   `json:"cap/version,omitempty"`
	Number       int      `json:"attempt"`          // the number of this capability's attempt, counted from 1
	Repair       bool     `json:"repair,omitempty"` // whether the attempt repairs the rejected answer of the preceding attempt
	Cancelled    bool     `json:"cancelled,omitempty"`
	Score        *float64 `json:"score,omitempty"`
	Judge        *float64 `json:"judge,omitempty"`
	MustFailed   []string `json:"must-failed,omitempty"`
	ShouldFailed []string `json:"should-failed,omitempty"`
	Failure      string   `json:"failure/type,omitempty"`
	Error        string   `json:"error,omitempty"`
	Usage        Usage    `json:"usage,omitzero"`
	// Verdicts holds the verdicts of the checks and the judge. The content of a Failed node does not contain them.
	Verdicts []Verdict `json:"-"`
	// Findings are the first 100 findings about a plan that cannot run, or about the corrected draft of an accepted plan. Like
	// Verdicts, they are not in the content of a node of type Failed.
	Findings stone.Findings `json:"-"`
}

// kept is the JSON form of a Record in meta. The JSON of the Record itself omits the strategy and the verdicts, because it is
// also the content of nodes of type Failed. More fields would change the ids of these nodes and also their schema, which is part
// of their readers' keys.
type kept struct {
	*Record
	Strategy string           `json:"strategy,omitempty"`
	Door     []Verdict        `json:"door,omitempty"`     // the verdicts of Input
	Verdicts [][]Verdict      `json:"verdicts,omitempty"` // the verdicts of Tried, by index
	Findings []stone.Findings `json:"findings,omitempty"` // of Tried, by index
}

// keep returns r in its form in meta.
func (r *Record) keep() kept {
	k := kept{Record: r, Strategy: r.Strategy}
	if r.Input != nil {
		k.Door = r.Input.Verdicts
	}
	for i, a := range r.Tried {
		if len(a.Verdicts) > 0 {
			k.Verdicts = append(k.Verdicts, make([][]Verdict, i-len(k.Verdicts))...)
			k.Verdicts = append(k.Verdicts, a.Verdicts)
		}
		if len(a.Findings) > 0 {
			k.Findings = append(k.Findings, make([]stone.Findings, i-len(k.Findings))...)
			k.Findings = append(k.Findings, a.Findings)
		}
	}
	return k
}

// restore returns the Record from which keep made k.
func (k *kept) restore() *Record {
	r := k.Record
	r.Strategy = k.Strategy
	if r.Input != nil {
		r.Input.Verdicts = k.Door
	}
	for i, of := range k.Verdicts[:min(len(k.Verdicts), len(r.Tried))] {
		r.Tried[i].Verdicts = of
	}
	for i, of := range k.Findings[:min(len(k.Findings), len(r.Tried))] {
		r.Tried[i].Findings = of
	}
	return r
}

// buffers are reused to encode records.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// meta returns node meta that contains the record.
func (r *Record) meta() map[string]string {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	text, err := canon.Append((*b)[:0], r.keep())
	if err != nil { // fails only for a message with invalid UTF-8
		text, _ = canon.Append((*b)[:0], &Record{Intent: r.Intent, Cap: r.Cap, Attempts: r.Attempts, Failure: r.Failure, Error: "no record: " + err.Error()})
	}
	*b = text
	return map[string]string{terms.CallNote: string(text)}
}

// RecordOf returns the Record in the meta of n, the node that a call or its failure has created. It returns nil if the Record is
// missing or malformed.
func RecordOf(n *dag.Node) *Record { return RecordIn(n.Meta()) }

// RecordIn is like RecordOf, but takes the meta of a node or a step record.
func RecordIn(meta map[string]string) *Record {
	text, ok := meta[terms.CallNote]
	if !ok {
		return nil
	}
	k := kept{Record: new(Record)}
	if err := json.Unmarshal([]byte(text), &k); err != nil || k.Record == nil {
		return nil
	}
	r := k.restore()
	if r.From = meta[terms.From]; r.From != "" {
		r.Usage = Usage{Cap: r.Usage.Cap, From: r.From}
	}
	return r
}

// findings returns the findings about the plan that made the call fail.
func (r *Record) findings() stone.Findings {
	if n := len(r.Tried); n > 0 && r.Failure != "" {
		return r.Tried[n-1].Findings
	}
	return nil
}

// timeless returns the record without latencies, modes and sandboxes. These differ from run to run, but the id of a node that
// contains the record must not.
func (r Record) timeless() Record {
	r.Usage = r.Usage.timeless()
	r.Tried = slices.Clone(r.Tried)
	for i := range r.Tried {
		r.Tried[i].Usage = r.Tried[i].Usage.timeless()
	}
	return r
}

func (u Usage) timeless() Usage {
	u.LatencyMS, u.Mode, u.Sandbox = 0, "", ""
	return u
}
