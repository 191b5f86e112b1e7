package stone

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

// cell is the content of all nodes: a number that follows from what its writer
// has read, and a key for matches that follows from the number.
type cell struct {
	N uint32
	K string
}

func newCell(n uint32) cell { return cell{n, fmt.Sprint("k", n%3)} }

var cellTypes = func() (types []dag.Type[cell]) {
	for i := range 7 {
		types = append(types, dag.NewType[cell](fmt.Sprint("t", i)))
	}
	return types
}()

// witness remembers which reads found something: by place, query and type. That
// is what a finding must not deny.
type witness struct {
	mu     sync.Mutex
	found  map[string]bool
	missed []error // reads of what must be there that found nothing
}

// rounds are the parts of an address that name rounds, lanes and visits.
var rounds = regexp.MustCompile(`\[\d+\]|@\d+`)

func (w *witness) saw(ctx context.Context, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found[rounds.ReplaceAllString(In(ctx).Path(), "")+" "+name] = true
}

// kindEmpty is the failure of a body that reads all of a type and finds none.
const kindEmpty = "empty-every"

// read does what q declares. It returns a number made from the result.
func (w *witness) read(ctx context.Context, d dag.DAG, q dag.Query) (uint32, error) {
	h := fnv.New32a()
	var nodes []*dag.Node
	var err error
	name := ""
	switch {
	case q.Type() == nil && (q.IsLatest()):
		if n := d.Latest(); n != nil {
			nodes = append(nodes, n)
		} else {
			err = &dag.ReadError{Err: dag.ErrMissing}
		}
	case q.Type() == nil:
		nodes = slices.Collect(d.Nodes())
	case q.IsNearest():
		name = q.Type().Name()
		var n *dag.Node
		if n, err = d.Nearest(name); err == nil {
			nodes = append(nodes, n)
		}
	case q.IsLanes():
		lanes, err := d.Lanes(q.Type().Name())
		if err == nil && slices.Contains(lanes, nil) {
			err = &dag.ReadError{Type: q.Type().Name(), Err: dag.ErrMissing}
		}
		if err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.missed = append(w.missed, err)
			return 0, err
		}
		nodes = lanes
	case q.After() != nil:
		name = q.Type().Name()
		nodes, err = d.Since(name, q.After().Name())
	default:
		name = q.Type().Name()
		if nodes, err = d.All(name); err == nil && len(nodes) == 0 && q.Type() != dag.AnyType(dag.Failure) {
			err = Fail(kindEmpty, "no %q at all", name)
		}
	}
	if err != nil && q.IsOptional() && !errors.Is(err, dag.ErrUndeclared) {
		return 0, nil
	}
	if len(nodes) > 0 && ctx != nil && !q.IsLanes() { // of which the lost ones need have none
		w.saw(ctx, name)
	}
	if err != nil {
		w.mu.Lock()
		w.missed = append(w.missed, err)
		w.mu.Unlock()
	}
	for _, n := range nodes {
		h.Write([]byte(n.ID().String()))
	}
	return h.Sum32(), err
}

func (w *witness) readAll(ctx context.Context, d dag.DAG, queries []dag.Query) (sum uint32, err error) {
	for _, q := range queries {
		n, err := w.read(ctx, d, q)
		if err != nil {
			return 0, err
		}
		sum = sum*31 + n
	}
	return sum, nil
}

// listing is everything about a DAG that must not depend on who finished first.
func listing(d dag.DAG) string {
	var b strings.Builder
	for n := range d.Nodes() {
		fmt.Fprintf(&b, "%s %s %s\n", n.ID(), n.Type(), n.JSON())
	}
	return b.String()
}

// share counts what the trees of a property were like.
type share struct{ all, valid, fans, loops, lost, failures, rows int }

func (s *share) count(d dag.DAG, p Ashlar) {
	p.each(func(sp *spec) {
		switch sp.form {
		case mapForm, parallelForm:
			s.fans++
		case loopForm:
			s.loops++
		}
		if slices.ContainsFunc(sp.queries, dag.Query.IsLanes) {
			s.rows++
		}
	})
	failures, _ := dag.All(dag.Failure).From(d)
	lost, _ := dag.Lost(d)
	s.lost += len(lost)
	s.failures += len(failures) - len(lost)
}

// TestValidNeverMissesInput draws trees of all forms. A tree without findings finds all
// nodes that it reads, in every run without a failed leaf, and produces the same DAG with
// any number of goroutines. If a tree has an error about a missing producer, the read
// really finds nothing.
func TestValidNeverMissesInput(t *testing.T) {
	var s share
	for range 10 {
		rapid.Check(t, func(t *rapid.T) {
			w := &witness{found: map[string]bool{}}
			p := (&grower{T: t, witness: w}).tree()
			findings := slices.DeleteFunc(Validate(p, Given{}), func(f Finding) bool { return f.Type == "unused-produce" })
			s.all++
			if len(findings) > 0 {
				checkDenied(t, w, p, findings)
				return
			}
			s.valid++
			s.count(checkValid(t, w, p), p)
		})
	}
	t.Logf("of %d trees %d are valid, with %d fan-outs and %d loops; their runs lost %d lanes and had %d other failures",
		s.all, s.valid, s.fans, s.loops, s.lost, s.failures)
	if s.valid < s.all/6 || s.valid > s.all*4/5 || s.fans < s.valid/2 || s.loops < s.valid/4 || s.lost == 0 || s.failures == 0 || s.rows < 10 {
		t.Errorf("the trees do not exercise the rules: %+v", s)
	}
}

// guilty are the kinds of failure that a valid tree does not end in.
func guilty(k kind.Kind) bool {
	return k == kind.MissingInput || k == kind.UndeclaredQuery || k == kindEmpty || k == kind.Panic || k == kind.BadContent
}

// ended is d as a run returns it: a failure in flight is its last node.
func ended(d dag.DAG) dag.DAG {
	if out, err := d.RecordFailure(); err == nil && d.InFlight() {
		return out
	}
	return d
}

func checkValid(t *rapid.T, w *witness, p Ashlar) dag.DAG {
	res, err := Run(context.Background(), p, Config{})
	if errors.As(err, new(*Invalid)) {
		t.Fatalf("valid, but refused: %v", err)
	}
	failures, _ := dag.All(dag.Failure).From(res.DAG)
	for _, f := range failures {
		if guilty(f.Kind) {
			t.Fatalf("no finding, but %s: %s\n%s", f.Kind, f.Reason, sketch(p))
		}
	}
	if len(w.missed) > 0 {
		t.Fatalf("no finding, but %v\n%s", w.missed, sketch(p))
	}
	for _, q := range p.QueriesAll() {
		if !q.IsOptional() && q.Type() != dag.AnyType(dag.Failure) && q.After() != dag.AnyType(dag.Failure) {
			t.Fatalf("no finding, but it needs %s from before it\n%s", q, sketch(p))
		}
	}
	want := listing(res.DAG)
	for _, most := range []int{1, 2} {
		if got := listing(ended(RunCrowded(context.Background(), p, Config{}, most))); got != want {
			t.Fatalf("%d goroutines give another DAG:\n%s\nwant:\n%s", most, got, want)
		}
	}
	return res.DAG
}

// checkDenied runs a tree in spite of its findings.
func checkDenied(t *rapid.T, w *witness, p Ashlar, findings Findings) {
	RunUnchecked(context.Background(), p, Config{})
	for _, f := range findings.Errors() {
		switch f.Type {
		case "missing-producer", "lane-type-read-as-one":
			if f.Queried != "" && w.found[f.Path+" "+f.Queried] && !asksTwice(p, f) {
				t.Fatalf("%v: but it was found\n%s", f, sketch(p))
			}
		case "fanout-not-reduced", "invalid-lens", "mixed-lanes", "lanes-outside-reduce":
		default:
			t.Fatalf("a finding that no tree of this property gives reason for: %v\n%s", f, sketch(p))
		}
	}
}

// asksTwice reports whether the ashlar of a finding asks for the type in another
// way too, which may find it.
func asksTwice(p Ashlar, f Finding) bool {
	most := 0
	p.each(func(s *spec) {
		n := 0
		for _, q := range s.queries {
			if q.Type() != nil && q.Type().Name() == f.Queried || q.After() != nil && q.After().Name() == f.Queried {
				n++
			}
		}
		if s.name == f.Ashlar {
			most = max(most, n)
		}
	})
	return most > 1
}
