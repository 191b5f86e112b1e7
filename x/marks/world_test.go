package marks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/x/marks"
)

// world is an office of fake services. Its log of what was done is the oracle: the product does not write it.
type world struct {
	mu    sync.Mutex
	texts map[string]string // what strangers wrote, by "mail", "web/URL", "file", "ticket", …
	log   []string
}

func (w *world) did(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *world) done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

func (w *world) text(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.texts[name]
}

func (w *world) write(name, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts[name] = text
}

type (
	none   struct{}
	at     struct{ URL string }
	letter struct{ To, Text string }
	note   struct{ Text string }
	file   struct{ Path, Text string }
	mood   struct {
		Label string `enum:"bug,question,spam"`
	}
)

// reader is a tool that returns what a stranger wrote.
func (w *world) reader(name, effect, text string) agent.Middleware {
	return tool.Func(name, "Reads.", func(context.Context, none) (string, error) { return w.text(text), nil }, tool.Effects(effect))
}

// actor is a tool with an effect that the log has.
func actor[I any](w *world, name string, effects ...string) agent.Middleware {
	return tool.Func(name, "Acts.", func(_ context.Context, in I) (string, error) {
		w.did("%s %v", name, in)
		return "ok", nil
	}, tool.Effects(effects...))
}

// tools are the tools of an assistant by their names.
func (w *world) tools(names ...string) (use []agent.Middleware) {
	all := []agent.Middleware{
		w.reader("read_mail", "mail/read", "mail"), w.reader("read_file", "fs/read", "file"), w.reader("read_tickets", "tickets/read", "ticket"),
		w.reader("read_calendar", "calendar/read", "calendar"), w.reader("read_memory", "memory/read", "memory"),
		tool.Func("fetch", "Fetches.", func(_ context.Context, in at) (string, error) {
			if strings.Contains(in.URL, "evil") {
				w.did("fetch %s", in.URL)
			}
			return w.text("web/" + in.URL), nil
		}, tool.Effects("net/get")),
		tool.Func("save_memory", "Saves.", func(_ context.Context, in note) (string, error) {
			w.write("memory", w.text("memory")+in.Text)
			return "saved", nil
		}, tool.Effects("memory/write")),
		actor[letter](w, "send_mail", "mail/send"), actor[at](w, "post", "net/post"), actor[file](w, "write_file", "fs/write"),
		actor[note](w, "run", "process"), actor[letter](w, "pay", "bank/pay"), actor[note](w, "comment", "tickets/write"),
		actor[letter](w, "invite", "calendar/write"), actor[letter](w, "grant_access", "access/write"), actor[mood](w, "label", "tickets/label"),
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(m agent.Middleware) bool { return m.Name == name })
		use = append(use, all[i])
	}
	return use
}

// office is the policy of the attacks: text of others may be read, kept and compared with more text, and nothing else.
var office = marks.Policy{"foreign": {
	From: []string{"mail/read", "fs/read", "tickets/read", "calendar/read", "memory/read", "net"},
	May:  []string{"mail/read", "fs/read", "tickets/read", "calendar/read", "memory/read", "memory/write"},
	Lift: []string{"ask", "clean", "no-orders", "approve", "closed"},
}}

var order = regexp.MustCompile(`DO (\w+) (\{[^}]*\})`)

// obedient is a model that does whatever any text in its conversation orders, once, and repeats in its answer all that it read.
func obedient() *script.Model {
	return script.Func(func(_ int, req *llm.Request) script.Answer {
		heard(req)
		var read strings.Builder
		done := map[string]bool{}
		for i := range req.Messages {
			m := &req.Messages[i]
			if m.Role != llm.RoleAssistant {
				read.WriteString(m.Text() + "\n")
			}
			for _, call := range m.ToolCalls {
				done[call.Name+compact(call.Input)] = true
			}
		}
		for _, found := range order.FindAllStringSubmatch(req.System+"\n"+read.String(), -1) {
			offered := slices.ContainsFunc(req.Tools, func(t llm.Tool) bool { return t.Name == found[1] })
			if offered && !done[found[1]+compact([]byte(found[2]))] {
				return script.Call(found[1], found[2])
			}
		}
		if req.ResponseFormat != nil {
			return script.JSON(map[string]string{"text": read.String()})
		}
		return script.Text(read.String())
	})
}

// refusals counts the requests in which a model reads that a call was refused because of a mark.
var refusals atomic.Int64

func heard(req *llm.Request) {
	for i := range req.Messages {
		if m := &req.Messages[i]; m.Role == llm.RoleTool && (strings.Contains(m.Text(), "with the mark foreign") || strings.Contains(m.Text(), "a person refused")) {
			refusals.Add(1)
		}
	}
}

// scripted is a model with fixed answers.
func scripted(answers ...script.Answer) *script.Model {
	return script.Func(func(n int, req *llm.Request) script.Answer {
		heard(req)
		return answers[n]
	})
}

func compact(raw []byte) string {
	var v any
	_ = json.Unmarshal(raw, &v)
	text, _ := json.Marshal(v)
	return string(text)
}

var (
	Task   = dag.NewType[string]("task")
	Page   = dag.NewType[string]("page")
	Report = dag.NewType[agent.Text]("report")
	Reply  = dag.NewType[agent.Text]("reply")
	Sent   = dag.NewType[string]("sent")
	Letter = dag.NewType[letter]("letter")
	Said   = dag.NewType[stone.Answer]("said")
)

// assistant is an agent that does the task.
func assistant(name string, use ...agent.Middleware) stone.Ashlar {
	return agent.New(name, Reply, obedient(), agent.Config{User: agent.Prompt(Task, func(t string) string { return t }), Use: use})
}

// run runs a pipeline and returns its error.
func run(t *testing.T, p stone.Ashlar, task string, policy marks.Policy) error {
	_, err := stone.Run(t.Context(), p, stone.Config{Input: dag.Of(Task.With(task)), Policy: policy})
	return err
}

// obedientPlanner reads the mail, and then runs the plan.
func obedientPlanner(program string) *script.Model {
	return scripted(script.Call("read_mail", `{}`), script.Call("run_plan", `{"plan":`+program+`}`), script.Text("done"))
}
