package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/internal/prompts"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// group is the type of a node that represents all cases whose digests begin with the same byte, its content. A leaf runs the
// cases of a group as lanes of its child. Because the nodes of a child do not stay in the DAG, 200,000 finished cases leave only
// 256 result nodes. The group of a case does not depend on other cases, so other cases do not change the case's place in the run,
// which is part of its reuse key.
var group = dag.NewType[string]("eval/group")

// A visit is one trial of a case, and the item of a lane.
type visit struct {
	Case  string `json:"case"`
	Trial int    `json:"trial"`
}

// answer is the pipeline's answer to a case.
type answer struct {
	Case    string                     `json:"case"`
	Trial   int                        `json:"trial"`
	Output  json.RawMessage            `json:"output,omitempty"` // nil if the pipeline failed
	Nodes   map[string]json.RawMessage `json:"nodes,omitempty"`  // content of the last node, by type
	Failure *failure                   `json:"failure,omitempty"`
}

type failure struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
	Error  bool   `json:"error,omitempty"` // a provider failed, not the pipeline
}

// paid is the cost of an answer or a score. It is stored in the node's meta, because times and prices must not change the node's
// id.
type paid struct {
	budget.Usage
	Seconds float64  `json:"seconds,omitempty"`
	Asked   []string `json:"asked,omitempty"` // capabilities that were called
	Call    *tried   `json:"call,omitempty"`  // result of the tuned call

	Past past.Counts `json:"past,omitzero"`
}

// metaKey is the meta key of a paid, or of a list of them, as JSON.
const metaKey = "eval"

var (
	visited  = dag.NewType[visit]("eval/case")
	answered = dag.NewType[answer]("eval/answer")
	scored   = dag.NewType[Score]("eval/score")
	results  = dag.NewType[outcomes]("eval/results")
)

// groups returns the groups that contain cases, with the indexes of their rows.
func (e *evaluation) groups() (names []string, rows map[string][]int32) {
	rows = map[string][]int32{}
	for i, r := range e.data.rows {
		name := r.id()[:2]
		rows[name] = append(rows[name], int32(i))
	}
	return slices.Sorted(maps.Keys(rows)), rows
}

// paths returns a function that maps the index of a case and a trial to the trial's path in the run.
func (e *evaluation) paths() func(at, trial int) string {
	names, rows := e.groups()
	return func(at, trial int) string {
		name := e.data.rows[at].id()[:2]
		group, _ := slices.BinarySearch(names, name)
		lane, _ := slices.BinarySearch(rows[name], int32(at))
		return fmt.Sprintf("%s/cases/each[%d]", groupPath(group), lane*(e.Trials+e.prior)+trial-1+e.prior)
	}
}

// groupPath returns the path of the i-th group.
func groupPath(i int) string { return fmt.Sprintf("eval/groups[%d]/group", i) }

// visits returns the trials of the cases at the given indexes.
func (e *evaluation) visits(rows []int32) (all []visit) {
	for _, i := range rows {
		for t := 1 - e.prior; t <= e.Trials; t++ {
			all = append(all, visit{e.data.rows[i].id(), t})
		}
	}
	return all
}

// group returns the leaf that runs the cases of a group.
func (e *evaluation) group(rows map[string][]int32) stone.Ashlar {
	steps := []stone.Ashlar{e.answer()}
	for _, s := range e.Scorers {
		steps = append(steps, s.leaf(e.data))
	}
	reads := []dag.Querier{dag.History(visited), dag.History(answered), dag.History(scored)}
	for _, s := range e.Scorers {
		reads = append(reads, s.calls...)
	}
	cases := stone.Seq("cases",
		stone.Map("each", dag.Derive(group, func(name string) []visit { return e.visits(rows[name]) }), visited, stone.Seq("case", steps...), stone.AllLanes(), stone.Lanes(1)),
		stone.Reduce(stone.Leaf("collect", results, func(_ context.Context, d dag.DAG) (*dag.Node, error) { return collect(d) }, stone.Queries(reads...))))
	return stone.Leaf("group", results, func(ctx context.Context, d dag.DAG) (*dag.Node, error) {
		out := stone.In(ctx).RunChild(cases, d).Within(nil)
		if out.InFlight() {
			return nil, out.Cause()
		}
		n, err := out.Nearest(results.Name())
		if err != nil {
			return nil, err
		}
		return dag.NewNode(dag.Spec{Type: results.Name(), Content: n.Content(), Parents: d.Next(), Meta: n.Meta()})
	}, stone.Queries(group), stone.Children(stone.Walk{}.Reads().InOrder(cases)), stone.Version(e.version()))
}

// version returns a digest of the cases, because a run cannot be resumed with different cases.
func (e *evaluation) version() string {
	return fmt.Sprintf("%s %d", e.data.sum, e.Trials)
}

// attempts is the maximum number of attempts for a case while its provider fails. It is meant for outages that last minutes,
// because models themselves retry.
const attempts = 3

// patience is the pause before the second attempt. The pause before the third attempt is four times as long.
var patience = time.Second

// answer returns the leaf that runs the pipeline on a case.
func (e *evaluation) answer() stone.Ashlar {
	p := e.Pipeline
	return stone.Leaf("answer", answered, func(ctx context.Context, d dag.DAG) (*dag.Node, error) {
		v, err := visited.From(d)
		if err != nil {
			return nil, err
		}
		if v.Trial == 0 {
			got, cost, err := e.before(ctx, v)
			if err != nil {
				return nil, err
			}
			return got.node(ctx, d, cost)
		}
		start, err := e.input(d, v)
		if err != nil {
			return nil, err
		}
		if out := e.out.Load(); out != nil {
			return nil, out
		}
		account := budget.From(ctx).Under(stone.In(ctx).Path())
		var began time.Time
		var out dag.DAG
		var counts past.Counts
		var lacks error
		for n := range attempts {
			began = time.Now()
			var r *past.Run
			if out, r, err = e.runs(budget.With(ctx, account), v, start); err != nil {
				return nil, err
			}
			var asked past.Counts
			asked, lacks = r.Counts()
			counts = past.Counts{Requests: counts.New + asked.Requests, New: counts.New + asked.New, USD: asked.USD}
			if lacks != nil || !out.InFlight() || !broken(out.Cause()) || refused(out.Cause()) || !(n < attempts-1 && retryafter.Sleep(ctx, patience<<(2*n)) == nil) {
				break
			}
		}
		took := time.Since(began).Seconds()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case lacks == nil && out.InFlight() && ends(out.Cause()):
			err := ending(out.Cause())
			if out, ok := err.(*lockedOutError); ok {
				e.out.Store(out)
			}
			return nil, err
		}
		got := answer{Case: v.Case, Trial: v.Trial}
		if err := got.take(out.Within(nil), start.Within(nil)); err != nil {
			return nil, err
		}
		if lacks != nil {
			got.Failure = &failure{fault.Kind(lacks), lacks.Error(), true}
		}
		if got.Failure != nil && got.Failure.Error {
			// A body that has called Await is not reused by other runs: they execute it again.
			if _, err := stone.In(ctx).Await(d); err != nil {
				return nil, err
			}
		}
		return got.node(ctx, d, paid{account.Used(), took, askedBy(start, out), e.tried(start, out), counts})
	}, stone.Queries(visited, prompts.Reader), stone.Children(stone.Walk{}.Reads().Writes(e.data.types()...).InOrder(p)), stone.Reusable())
}

// node returns the node of an answer. It reports the answer to watchers, unless it comes from a recorded run.
func (a *answer) node(ctx context.Context, d dag.DAG, p paid) (*dag.Node, error) {
	if a.Trial > 0 {
		stone.In(ctx).Event(slog.LevelInfo, answerEvent, slog.Bool("failed", a.Failure != nil))
	}
	cost, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return dag.NewNode(dag.Spec{Type: answered.Name(), Content: a, Parents: d.Next(), Meta: map[string]string{metaKey: string(cost)}})
}

// input adds the input of a case to the DAG.
func (e *evaluation) input(d dag.DAG, v visit) (dag.DAG, error) {
	at, ok := e.data.byID[v.Case]
	if !ok {
		return d, fmt.Errorf("the data no longer has the case %s", v.Case)
	}
	values := e.data.rows[at].values()
	for i, in := range e.data.inputs {
		content := values[i]
		items := []json.RawMessage{content}
		if content == nil {
			continue
		}
		if in.Many {
			var err error
			if items, err = itemsOf(content); err != nil {
				return d, err
			}
		}
		for _, item := range items {
			n, err := dag.NewNode(dag.Spec{Type: in.Type.Name(), Content: item, Parents: d.Next()})
			if err == nil {
				d, err = d.Append(n)
			}
			if err != nil {
				return d, err
			}
		}
	}
	return d, nil
}

// take reads the nodes that the pipeline added to start.
func (a *answer) take(out, start dag.DAG) error {
	made := out.Beyond(start)
	a.Nodes = map[string]json.RawMessage{}
	for _, n := range made {
		a.Nodes[n.Type()] = json.RawMessage(n.JSON())
	}
	if out.InFlight() {
		content, err := dag.Failure.Of(out.Latest())
		a.Failure = &failure{string(content.Kind), content.Reason, broken(out.Cause()) || errors.Is(out.Cause(), notRecorded)}
		return err
	}
	last := out.Latest()
	if a.Nodes[planType] != nil { // the output of a plan is the value that the plan emits
		last, _ = out.Nearest(terms.Emit)
	}
	if last == nil || !slices.Contains(made, last) {
		a.Failure = &failure{Kind: "no-output", Reason: "the pipeline produced no output node"}
		return nil
	}
	a.Output = json.RawMessage(last.Own())
	return nil
}

// planType is the type of a plan's first node.
const planType = "stone/plan"

// ends reports whether an error ends the whole run rather than only its case, because the budget is exhausted, a question is
// waiting, the recorder has failed, a check is broken, or a provider rejects the key or the account.
func ends(err error) bool {
	return fault.EndsRun(err) || lockedOut(err) ||
		slices.ContainsFunc([]kind.Kind{kind.Waiting, kind.Recorder, kind.Replay, reasons.CheckBroken}, func(k kind.Kind) bool { return errors.Is(err, k) })
}

// ending returns the error with which a step ends the run. If a call cannot afford any candidate, this is the
// *budget.ExhaustedError, so that the run can be resumed with a larger budget.
func ending(err error) error {
	if spent, ok := errors.AsType[*budget.ExhaustedError](err); ok {
		return spent
	}
	if lockedOut(err) {
		return &lockedOutError{err}
	}
	return err
}

// lockedOut reports whether a provider rejects the key or the account, and will therefore reject every case.
func lockedOut(err error) bool {
	h, ok := errors.AsType[*llm.HTTPError](err)
	return ok && (h.Status >= 401 && h.Status <= 403 || h.Status == 429 && h.Final)
}

// A lockedOutError ends all lanes of the evaluation.
type lockedOutError struct{ error }

func (e *lockedOutError) Unwrap() error { return e.error }
func (e *lockedOutError) EndsRun() bool { return true }

// modelFailed is the failure kind of an agent whose model failed.
const modelFailed kind.Kind = "llm-error"

// notRecorded is the failure kind of a request without a recorded answer. It is an error but not an outage: retrying does not
// help.
const notRecorded kind.Kind = reasons.NotRecorded

// outages lists the failure kinds that are caused by a provider, not by the pipeline.
var outages = []kind.Kind{
	kind.Timeout, modelFailed,
	reasons.SoftTimeout, reasons.Unavailable, reasons.InvokeFailed, reasons.NoCandidate, reasons.Down,
}

// refused reports whether a provider has rejected the request for a reason that also applies to the following requests.
func refused(err error) bool {
	_, ok := errors.AsType[*llm.HTTPError](err)
	return ok && !llm.Retryable(err)
}

// broken reports whether an error comes from a provider.
func broken(err error) bool {
	return !ends(err) && slices.ContainsFunc(outages, func(k kind.Kind) bool { return errors.Is(err, k) })
}
