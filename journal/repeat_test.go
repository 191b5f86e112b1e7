package journal_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

var programs = flag.Int("programs", 60, "how many random programs TestRepeated runs")

// Random programs are killed, retried, answered, done anew and run in another order, against a model of what may be
// repeated: what has a result is not done again unless somebody asks for it, every body gets the results of its own
// steps and the answers to its own questions, and every run ends.
func TestRepeated(t *testing.T) {
	for seed := range *programs {
		w := newWorld(t, uint64(seed))
		w.live()
		if len(w.wrong) > 0 {
			t.Fatalf("program %d: %s\n%s\n%s", seed, strings.Join(w.wrong, "\n"), w, strings.Join(w.story, "\n"))
		}
	}
}

// A deed is a step or a question of a body.
type deed struct {
	name   string // of its step, which others of the body have, too
	about  string // its input
	asks   bool
	fails  int // its first so many executions fail
	times  int // it was executed
	done   bool
	result string
	at     string // the path where it is recorded
	stays  bool   // the result of a Value: a later step is recorded
	value  bool
	given  []string // the answers to its question
	inner  *deed    // a step within it
	made   bool     // as a leaf that is made during the run
}

// is says what identifies the deed, beside its place among equal ones.
func (d *deed) is() [2]string {
	if d.value {
		return [2]string{"value", d.name}
	}
	return [2]string{d.name, d.about}
}

// A part is a leaf with its deeds.
type part struct {
	name    string
	deeds   []*deed
	other   []int // another order of the deeds
	swapped bool  // the body uses it
	apart   bool  // the body does them on another goroutine, in any order
	fixed   bool  // it has one order
	retried bool  // the body has attempts
}

// has reports whether a path is in the part.
func (p *part) has(path string) bool {
	below, ok := strings.CutPrefix(path, "all/"+p.name)
	return ok && (strings.HasPrefix(below, "/") || strings.HasPrefix(below, "~"))
}

// world is what the programs act on. It outlives their processes.
type world struct {
	rand    *rand.Rand
	parts   []*part
	store   *sqlite.DB
	steady  bool // nothing is done anew on purpose, which would hide that it is done in another order
	wrong   []string
	story   []string
	serial  int
	pending *deed  // executed, and not recorded yet
	made    string // its result
}

func newWorld(t memdb.T, seed uint64) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 41)), store: memdb.New(t)}
	w.steady = w.one(2)
	for i := range 1 + w.rand.IntN(3) {
		p := &part{name: fmt.Sprint("part-", i), apart: w.one(4)}
		p.fixed = !p.apart && w.one(3)
		p.retried = w.one(2)
		for j := range 1 + w.rand.IntN(6) {
			d := &deed{name: fmt.Sprint("do-", w.rand.IntN(3)), about: fmt.Sprint("about ", w.rand.IntN(3))}
			switch {
			case w.one(2):
				d.asks, d.name, d.about = true, fmt.Sprint("ask-", w.rand.IntN(2)), fmt.Sprint("question ", j)
			case w.one(6):
				d.value = true
			case w.one(3):
				d.fails = 1 + w.rand.IntN(3)
			}
			if !d.asks && !d.value && w.one(3) {
				d.inner = &deed{name: "inner", about: d.about, made: w.one(2)}
				if d.inner.made && w.one(2) {
					d.inner.inner = &deed{name: "inner", about: d.about}
				}
			}
			if p.apart { // equal ones cannot be told apart, and a question is at the path of its step
				d.about = fmt.Sprint("about ", j)
				if d.asks || d.value {
					d.name = fmt.Sprint("own-", j)
				}
			}
			p.deeds = append(p.deeds, d)
		}
		name := p.deeds[w.rand.IntN(len(p.deeds))].name // of two names, each might be recorded in an order of its own
		perm := w.rand.Perm(len(p.deeds))
		perm = slices.DeleteFunc(perm, func(i int) bool { return p.deeds[i].name != name })
		for i, d := range p.deeds {
			if d.name == name {
				i, perm = perm[0], perm[1:]
			}
			p.other = append(p.other, i)
		}
		for i := range p.other { // equal ones are told apart by their order
			for j := range i {
				if a, b := p.deeds[p.other[j]], p.deeds[p.other[i]]; p.other[j] > p.other[i] && a.is() == b.is() {
					p.other[i], p.other[j] = p.other[j], p.other[i]
				}
			}
		}
		w.parts = append(w.parts, p)
	}
	return w
}

func (w *world) one(of int) bool { return w.rand.IntN(of) == 0 }

func (w *world) String() string {
	var b strings.Builder
	for _, p := range w.parts {
		fmt.Fprintf(&b, "%s: apart %t, retried %t, other order %v\n", p.name, p.apart, p.retried, p.other)
		for i, d := range p.deeds {
			fmt.Fprintf(&b, "  %d %s(%s) asks %t, value %t, fails %d\n", i, d.name, d.about, d.asks, d.value, d.fails)
		}
	}
	return b.String()
}

func (w *world) say(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

func (w *world) fault(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	w.say("WRONG "+format, args...)
}

// pipeline is the program: its parts read what those before them made.
func (w *world) pipeline() stone.Ashlar {
	var all []stone.Ashlar
	before := dag.Derive(dag.Nothing, func(struct{}) string { return "" })
	for _, p := range w.parts {
		made := dag.NewType[string](p.name)
		var opts []stone.LeafOption
		if p.retried {
			opts = append(opts, stone.Retry{Attempts: 3, Backoff: 1})
		}
		all = append(all, stone.Func(p.name, before, made, func(ctx context.Context, in string) (string, error) { return w.body(ctx, p, in) }, opts...))
		before = made
	}
	return stone.Seq("all", all...)
}

func (w *world) body(ctx context.Context, p *part, in string) (made string, err error) {
	order := make([]int, len(p.deeds))
	for i := range order {
		order[i] = i
	}
	if p.apart {
		order = w.rand.Perm(len(order))
	} else if p.swapped {
		order = p.other
	}
	work := func() {
		results := make([]string, len(order))
		var late []*deed // values that are recorded with the next step
		for _, i := range order {
			if p.retried && w.one(20) {
				err = errors.New("a fault that no step has")
				return
			}
			d := p.deeds[i]
			if results[i], err = w.do(ctx, d); err != nil {
				return
			}
			if d.value {
				late = append(late, d)
				continue
			}
			for _, v := range late {
				v.stays = true
			}
		}
		made = in + "|" + strings.Join(results, ",")
	}
	if !p.apart {
		work()
		return made, err
	}
	over := make(chan struct{})
	go func() { defer close(over); work() }()
	<-over
	return made, err
}

// do does a deed, and checks what the body gets.
func (w *world) do(ctx context.Context, d *deed) (got string, err error) {
	switch {
	case d.asks:
		got, err = stone.Step(ctx, d.name, d.about, func(ctx context.Context, _ string) (string, error) {
			w.execute(ctx, d)
			said, err := stone.In(ctx).Ask(ask.Question{Name: d.name, Text: d.about})
			if err == nil {
				w.pending, w.made = d, said
			}
			return said, err
		})
	case d.value:
		got, err = stone.Value(ctx, d.name, func(ctx context.Context) (string, error) {
			if d.stays {
				w.fault("the value %s was recorded and is made again", d.name)
			}
			w.serial++
			d.result = fmt.Sprint("value ", w.serial)
			return d.result, nil
		})
	case d.made:
		made := dag.NewType[string](d.name)
		leaf := stone.Func0(d.name, made, func(ctx context.Context) (string, error) { return w.work(ctx, d) })
		lane := stone.In(ctx).RunDynamic(leaf, dag.DAG{}, []string{})
		if err = lane.Cause(); !lane.Failed() {
			got, err = made.From(lane)
		}
	default:
		got, err = stone.Step(ctx, d.name, d.about, func(ctx context.Context, about string) (string, error) {
			if about != d.about {
				w.fault("%s(%s) is executed for %s", d.name, about, d.about)
			}
			return w.work(ctx, d)
		})
	}
	if err == nil && got != d.result && !slices.Contains(d.given, got) {
		w.fault("%s(%s) got %q, want %q or one of %q", d.name, d.about, got, d.result, d.given)
	}
	return got, err
}

// work does a deed and what is within it.
func (w *world) work(ctx context.Context, d *deed) (string, error) {
	w.execute(ctx, d)
	if d.inner != nil {
		if _, err := w.do(ctx, d.inner); err != nil {
			return "", err
		}
	}
	w.serial++
	if d.times <= d.fails {
		return "", fmt.Errorf("failure %d", d.times)
	}
	w.pending, w.made = d, fmt.Sprint("result ", w.serial)
	return w.made, nil
}

func (w *world) execute(ctx context.Context, d *deed) {
	d.times++
	w.say("  %s: %s(%s) for the time %d", stone.In(ctx).Path(), d.name, d.about, d.times)
	if d.done {
		w.fault("%s(%s) has the result %q and is done again", d.name, d.about, d.result)
	}
}

// A process is the journal of a program that dies.
type process struct {
	*sqlite.DB
	world *world
	left  int // so many steps until it dies
	how   int // before the step, after its work, or after its record
	dead  bool
}

var errKilled = errors.New("killed")

func (p *process) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	w := p.world
	if p.dead {
		return step.Record{}, errKilled
	}
	p.left--
	dies := p.left < 0
	if dies && p.how == 0 {
		p.die(key)
		return step.Record{}, errKilled
	}
	rec, err := p.DB.Do(ctx, key, func(ctx context.Context) (step.Record, error) {
		rec, err := work(ctx)
		if err == nil && (p.dead || dies && p.how == 1) {
			p.die(key)
			w.pending = nil
			return step.Record{}, errKilled
		}
		return rec, err
	})
	if d := w.pending; d != nil && err == nil && (key.Kind == "step" || d.made) {
		w.pending, d.done, d.result, d.at = nil, true, w.made, key.Path
		w.say("  %s is recorded: %s", key.Path, w.made)
	}
	if dies && !p.dead {
		p.die(key)
	}
	if p.dead {
		return step.Record{}, errKilled
	}
	return rec, err
}

func (p *process) die(key step.Key) {
	p.dead = true
	p.world.say("  dies at %s %s, in the way %d", key.Kind, key.Path, p.how)
}

func (p *process) Ask(ctx context.Context, q journal.Question) (journal.Question, error) {
	if p.dead {
		return q, errKilled
	}
	return p.DB.Ask(ctx, q)
}

func (p *process) Begin(ctx context.Context, r journal.RunInfo, input dag.DAG) error {
	if p.dead {
		return errKilled
	}
	return p.DB.Begin(ctx, r, input)
}

func (p *process) End(ctx context.Context, id string, o journal.Outcome) error {
	if p.dead {
		return errKilled
	}
	return p.DB.End(ctx, id, o)
}

func (p *process) Release(id string) error { return p.DB.Release(id) }

// live runs the program in process after process until it is done, and once more.
func (w *world) live() {
	var recorder stone.RunRecorder
	var p *process
	const most = 120
	for visit := 0; len(w.wrong) == 0; visit++ {
		if visit == most {
			w.fault("the run is not done after %d processes", visit)
			return
		}
		opts := journal.Options{Again: w.again(visit)}
		if len(opts.Again) > 0 || p == nil || p.dead || !w.one(3) {
			p = &process{DB: w.store, world: w}
			recorder = journal.Keep(p, opts)
		} // else another visit of the process that ran it before
		if p.left = 1 << 30; visit < 20 && !w.one(3) {
			p.left, p.how = w.rand.IntN(12), w.rand.IntN(3)
		}
		w.pending = nil
		w.say("process %d, again %v", visit, opts.Again)
		_, err := stone.Run(context.Background(), w.pipeline(), stone.Config{RunID: "r", Recorder: recorder})
		w.say("  ends: %v", err)
		_ = w.store.Release("r")
		switch {
		case err == nil && visit >= 20:
			return
		case errors.Is(err, kind.Replay):
			w.otherOrder(err)
		case errors.Is(err, kind.Panic):
			w.fault("%v", err)
		case w.one(2):
			for _, one := range w.parts {
				// What was started without a result stays at its place: neither order may fit it later.
				if !one.fixed && w.one(2) && !slices.ContainsFunc(one.deeds, func(d *deed) bool { return d.times > 0 && !d.done }) {
					one.swapped = !one.swapped
				}
			}
		}
		w.answer()
	}
}

// otherOrder has the part that stopped the run do its deeds in the other order: the record has its own.
func (w *world) otherOrder(err error) {
	failure, _ := errors.AsType[*stone.Failure](err)
	for _, p := range w.parts {
		if p.has(failure.Path) {
			if p.apart || p.fixed {
				w.fault("the order of %s, which is its own, stops the run: %v", p.name, err)
			}
			p.swapped = !p.swapped
			return
		}
	}
	w.fault("nothing has changed at %s: %v", failure.Path, err)
}

// again chooses what is done anew. What reads it may be done again, too.
func (w *world) again(visit int) []string {
	if visit == 0 || visit > 25 || w.steady || !w.one(6) {
		return nil
	}
	var done []int
	steps, err := w.store.Steps(context.Background(), "r")
	if err != nil {
		w.fault("%v", err)
	}
	for i, p := range w.parts {
		if slices.ContainsFunc(steps, func(s journal.Step) bool { return s.Path == "all/"+p.name && s.Kind == "leaf" && s.Recorded }) {
			done = append(done, i)
		}
	}
	if len(done) == 0 {
		return nil
	}
	i := done[w.rand.IntN(len(done))]
	for j, p := range w.parts[i:] {
		for _, d := range p.deeds {
			d.done, d.stays = false, false
			for in := d.inner; in != nil; in = in.inner {
				in.done, in.result = false, ""
			}
			if j == 0 {
				d.given, d.result = nil, ""
			}
		}
	}
	return []string{"all/" + w.parts[i].name}
}

// answer answers some of the open questions.
func (w *world) answer() {
	questions, err := w.store.Questions(context.Background(), "r")
	if err != nil {
		w.fault("%v", err)
	}
	for _, q := range questions {
		if !q.Open() || w.one(3) {
			continue
		}
		w.serial++
		response := fmt.Sprint("answer ", w.serial)
		for _, p := range w.parts {
			for _, d := range p.deeds {
				if !d.asks || d.about != q.Text || !p.has(q.Path) {
					continue
				}
				if d.done && d.at == q.Path { // in another attempt it stays until the leaf is done
					w.fault("%s has its answer and is asked again", q.Path)
				}
				d.given = append(d.given, response)
			}
		}
		w.say("  a person answers %s (%s): %s", q.Path, q.Text, response)
		if err := journal.Answer(context.Background(), w.store, "r", q.Path, ask.Answer{Response: response}); err != nil {
			w.fault("%v", err)
		}
	}
}
