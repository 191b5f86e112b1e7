package tui

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/progress"
)

// Items that a feed collects.
type (
	started struct{ id string }   // a run has started
	entered struct{ path string } // an agent has started
	left    struct{ path string } // an agent has ended
	asked   struct {              // a model has been called
		path, model string
		turn        int
	}
	used budget.Usage // usage since the last item of this type
	// piece is a part of an answer: one delta, or several joined deltas of the same kind.
	piece struct {
		path  string // path of the speaker, usually an agent
		turn  int
		from  string // path of the events
		kind  event.DeltaKind
		index int
		tool  string
		text  []byte
	}
	voided struct { // text has been retracted
		path string
		turn int
		from string
		event.Retracted
	}
	whole struct { // an answer that was not streamed
		path  string
		turn  int
		reply *event.ModelReply
	}
	called struct { // a tool has run
		path           string
		turn, position int
		name, in, out  string
		ok             bool
		elapsed        time.Duration
	}
	reported struct{ path, message string } // a server has reported on a call in progress
	verdict  struct {                       // a call has ended
		path, cap, failure string
		attempts           int
		elapsed            time.Duration
		usage              budget.Usage
	}
	failed struct { // attempt is 0 if the failure is final
		kind, path, reason string
		attempt            int
	}
	answered  struct{ name, response string }
	withdrawn struct{ *question } // the answer is no longer needed
	missed    struct{ items int } // items that were dropped for lack of space
)

// A question is an ask.Question that is waiting for its answer.
type question struct {
	ask.Question
	answer chan string        // receives one answer
	read   func(string) error // reads the run's input from the typed text, instead of an answer
}

// maxWaiting is the maximum number of bytes in a feed that have not been fetched.
const maxWaiting = 1 << 20

// A feed collects the items of a run until the display fetches them. It is safe for concurrent use.
type feed struct {
	by string // name of the person who answers

	mu     sync.Mutex
	items  []any
	size   int
	missed int
	spent  budget.Usage // usage since items were last taken
	ledger progress.Ledger
	agents map[string]bool // paths of the agents that are working
	turns  map[string]int  // turns of answers that are being streamed

	running atomic.Bool // a run is in progress, so its clock must be drawn
}

// cost is the approximate size of an item without its text, in bytes.
const cost = 128

// put appends an item whose text has size bytes. If there is no space, the item is only counted.
func (f *feed) put(item any, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size+size+cost > maxWaiting {
		f.missed++
		return
	}
	f.size += size + cost
	f.items = append(f.items, item)
}

// must appends an item even if there is no space, because the run is waiting for it.
func (f *feed) must(item any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items = append(f.items, item)
}

// take returns the items that were added since the last call of take, and removes them from the feed.
func (f *feed) take() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	items := f.items
	if f.missed > 0 {
		items = append(items, missed{f.missed})
	}
	if f.spent != (budget.Usage{}) {
		items = append(items, used(f.spent))
	}
	f.items, f.size, f.missed, f.spent = nil, 0, 0, budget.Usage{}
	return items
}

func (f *feed) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.items) == 0 && f.missed == 0 && f.spent == (budget.Usage{})
}

// speaker returns the path of the agent that speaks at the given path, and the number of its turn. An agent's turns are steps
// below the agent.
func (f *feed) speaker(path string) (who string, turn int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if up := address.Parent(path); up != "" && f.agents[up] {
		return up, f.turns[path]
	}
	return path, f.turns[path]
}

// begins and ends record which agents are working.
func (f *feed) begins(agent string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.agents == nil {
		f.agents = map[string]bool{}
	}
	f.agents[agent] = true
}

func (f *feed) ends(agent string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.agents, agent)
	maps.DeleteFunc(f.turns, func(path string, _ int) bool { return strings.HasPrefix(path, agent+"/") })
}

// turn records the turn of an agent that starts at a path.
func (f *feed) turn(path string, turn int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if turn == 0 {
		return
	}
	if f.turns == nil {
		f.turns = map[string]int{}
	}
	f.turns[path] = turn
}

// delta adds a piece of an answer.
func (f *feed) delta(from string, d event.Delta) {
	if d.End {
		return
	}
	p := piece{from: from, kind: d.Kind, index: d.Index, tool: d.Tool}
	p.path, p.turn = f.speaker(from)
	if !f.join(&p, d.Text) {
		p.text = []byte(d.Text)
		f.put(&p, len(d.Text))
	}
}

// join appends the text to the last item if that item is of the same kind.
func (f *feed) join(p *piece, text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.items) == 0 || f.size+len(text) > maxWaiting {
		return false
	}
	last, ok := f.items[len(f.items)-1].(*piece)
	if !ok || last.from != p.from || p.tool != "" || last.kind != p.kind || last.index != p.index {
		return false
	}
	last.text = append(last.text, text...)
	f.size += len(text)
	return true
}

// Ask implements ask.Frontend.
func (f *feed) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
	open := &question{Question: q, answer: make(chan string, 1)}
	f.must(open)
	select {
	case response := <-open.answer:
		return ask.Answer{Response: response, By: f.by}, nil
	case <-ctx.Done():
		f.must(withdrawn{open})
		return ask.Answer{}, ctx.Err()
	}
}

// A watcher receives the events of one run.
type watcher struct {
	*feed
	tree *progress.Tree
}

// Wants implements event.Watcher: the screen shows everything.
func (w watcher) Wants(context.Context, slog.Level) bool { return true }

// Watch implements event.Watcher.
func (w watcher) Watch(_ context.Context, e event.Event) {
	w.tree.Note(e)
	w.spend(e)
	switch d := e.Data.(type) {
	case event.RunStarted:
		w.put(started{e.Run}, 0)
	case event.AgentStarted:
		w.begins(e.Path)
		w.put(entered{e.Path}, 0)
	case event.AgentEnded:
		w.ends(e.Path)
		w.put(left{e.Path}, 0)
	case event.ModelRequest:
		w.turn(e.Path, d.Turn)
		who, turn := w.speaker(e.Path)
		w.put(asked{who, d.Model, turn}, 0)
	case event.ModelResponse:
		w.answer(e.Path, d)
	case event.Delta:
		w.delta(e.Path, d)
	case event.Retracted:
		who, turn := w.speaker(e.Path)
		w.put(voided{who, turn, e.Path, d}, len(d.Reason))
	case event.ToolDone:
		c := called{
			path: e.Path, turn: d.Turn, position: d.Position,
			name: d.Tool, in: raw(d.Input), out: d.Text, ok: d.OK, elapsed: d.Elapsed,
		}
		c.in, c.out = c.in[:min(len(c.in), maxOneLine)], c.out[:min(len(c.out), maxOneLine)]
		w.put(c, len(c.in)+len(c.out))
	case event.Progress:
		if d.Message != "" {
			w.put(reported{e.Path, d.Message}, len(d.Message))
		}
	case event.CallVerdict:
		w.put(verdict{e.Path, d.Cap, d.Failure, d.Attempts, d.Latency, d.Usage}, len(d.Failure))
	case event.StepFailed:
		w.put(failed{d.Kind, e.Path, d.Reason, 0}, len(d.Reason))
	case event.AttemptFailed:
		w.put(failed{d.Kind, e.Path, d.Reason, d.Attempt}, len(d.Reason))
	case event.QuestionAnswered:
		w.put(answered{e.Name, d.Answer}, 0)
	}
}

// answer adds a whole answer, which is shown only if no pieces of it were shown.
func (f *feed) answer(path string, d event.ModelResponse) {
	if d.Reply != nil {
		who, _ := f.speaker(path)
		f.put(whole{who, d.Turn, d.Reply}, len(d.Reply.Text)+len(d.Reply.Reasoning))
	}
}

// spend adds the usage that an event reports.
func (f *feed) spend(e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if more := f.ledger.Note(e); more != (budget.Usage{}) {
		f.spent = f.spent.Add(more)
	}
}

// maxOneLine is the maximum size in bytes of a text shown on one line.
const maxOneLine = 1024

// raw returns the JSON of a value.
func raw(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
