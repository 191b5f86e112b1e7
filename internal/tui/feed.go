package tui

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/llm"
)

// What a feed holds.
type (
	started struct{ id string }   // a run begins
	entered struct{ path string } // an agent begins
	left    struct{ path string } // and ends
	asked   struct {              // a model is asked
		path, model string
		turn        int
	}
	used struct{ input, output int64 } // tokens of an answer
	// piece is one or several deltas of a kind, joined.
	piece struct {
		path  string
		turn  int
		kind  llm.Kind
		index int
		text  []byte
		call  *llm.ToolCall
		reply *llm.Reply
		err   error
	}
	called struct { // a tool has run
		path           string
		turn, position int
		name, in, out  string
		ok             bool
		elapsed        time.Duration
	}
	failed struct { // attempt is 0 if the failure is for good
		kind, path, reason string
		attempt            int
	}
	answered  struct{ name, response string }
	withdrawn struct{ *question } // nobody waits for the answer any more
	missed    struct{ items int } // what there was no space for
)

// question is one that waits for its answer.
type question struct {
	stone.Question
	answer chan string // takes one
}

// maxWaiting bounds the bytes that wait in a feed.
const maxWaiting = 1 << 20

// A feed takes what comes from a run until the display fetches it. It may be used
// by several goroutines at once.
type feed struct {
	mu     sync.Mutex
	items  []any
	size   int
	missed int

	running atomic.Bool // there is a clock to be drawn
}

// cost is about how many bytes an item takes beside its text.
const cost = 128

// put appends an item with a text of so many bytes, if there is space.
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

// must appends an item that the run waits for.
func (f *feed) must(item any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items = append(f.items, item)
}

// take returns what has come since it was last called.
func (f *feed) take() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	items := f.items
	if f.missed > 0 {
		items = append(items, missed{f.missed})
	}
	f.items, f.size, f.missed = nil, 0, 0
	return items
}

func (f *feed) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.items) == 0 && f.missed == 0
}

// observe is the observer of agents.
func (f *feed) observe(d agent.Delta) {
	p := piece{path: d.Path, turn: d.Turn, kind: d.Kind, index: d.Index, call: d.Call, reply: d.Reply, err: d.Err}
	switch d.Kind {
	case llm.Start, llm.Progress:
	case llm.Text, llm.Reasoning, llm.Refusal, llm.ToolInput:
		if !f.join(&p, d.Text) {
			p.text = []byte(d.Text)
			f.put(&p, len(d.Text))
		}
	case llm.Done:
		size := 0
		if d.Reply != nil {
			size = len(d.Reply.Text) + len(d.Reply.Reasoning)
		}
		f.put(&p, size)
	default:
		f.put(&p, 0)
	}
}

// join appends the text to the last item if that is of the same kind.
func (f *feed) join(p *piece, text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.items) == 0 || f.size+len(text) > maxWaiting {
		return false
	}
	last, ok := f.items[len(f.items)-1].(*piece)
	if !ok || last.path != p.path || last.turn != p.turn || last.kind != p.kind || last.index != p.index {
		return false
	}
	last.text = append(last.text, text...)
	f.size += len(text)
	return true
}

// Ask implements stone.Frontend.
func (f *feed) Ask(ctx context.Context, q stone.Question) (string, error) {
	open := &question{q, make(chan string, 1)}
	f.must(open)
	select {
	case response := <-open.answer:
		return response, nil
	case <-ctx.Done():
		f.must(withdrawn{open})
		return "", ctx.Err()
	}
}

// A handler takes the events of one run.
type handler struct {
	*feed
	tree *progress.Tree
}

// Enabled implements slog.Handler: the tree wants every event.
func (h handler) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler. What it adds is not shown.
func (h handler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup implements slog.Handler. Groups are not shown.
func (h handler) WithGroup(string) slog.Handler { return h }

// Handle implements slog.Handler. It never fails.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	h.tree.Note(r)
	switch r.Message {
	case "run-start":
		h.put(started{attrs(r)["trace-id"].String()}, 0)
	case "agent-ashlar-start":
		h.put(entered{stone.Path(ctx)}, 0)
	case "agent-ashlar-end":
		h.put(left{stone.Path(ctx)}, 0)
	case "api-call":
		a := attrs(r)
		h.put(asked{stone.Path(ctx), a["model"].String(), int(number(a["turn-number"]))}, 0)
	case "api-response":
		a := attrs(r)
		h.put(used{number(a["input-tokens"]), number(a["output-tokens"])}, 0)
	case "tool-dispatch-payload":
		a := attrs(r)
		c := called{
			path: a["path"].String(), turn: int(number(a["turn-number"])), position: int(number(a["position"])),
			name: a["tool-name"].String(), in: raw(a["input"]), out: a["result-text"].String(), ok: truth(a["ok"]), elapsed: elapsed(a["elapsed"]),
		}
		c.in, c.out = c.in[:min(len(c.in), maxOneLine)], c.out[:min(len(c.out), maxOneLine)]
		h.put(c, len(c.in)+len(c.out))
	case "failure", "attempt-failed":
		a := attrs(r)
		e := failed{a["kind"].String(), a["path"].String(), a["reason"].String(), int(number(a["attempt"]))}
		h.put(e, len(e.reason))
	case "question-answered":
		a := attrs(r)
		h.put(answered{a["ashlar-name"].String(), a["answer"].String()}, 0)
	}
	return nil
}

// maxOneLine is how many bytes are kept of what is shown on one line.
const maxOneLine = 1024

func attrs(r slog.Record) map[string]slog.Value {
	out := make(map[string]slog.Value, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		out[a.Key] = a.Value
		return true
	})
	return out
}

func number(v slog.Value) int64 {
	if v.Kind() == slog.KindInt64 {
		return v.Int64()
	}
	return 0
}

func truth(v slog.Value) bool { return v.Kind() == slog.KindBool && v.Bool() }

func elapsed(v slog.Value) time.Duration {
	if v.Kind() == slog.KindDuration {
		return v.Duration()
	}
	return 0
}

// raw returns JSON as it is.
func raw(v slog.Value) string {
	if b, ok := v.Any().(interface{ MarshalJSON() ([]byte, error) }); ok {
		if out, err := b.MarshalJSON(); err == nil {
			return string(out)
		}
	}
	return v.String()
}
