package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	people "github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/step"
	confirm "github.com/stonelayer/stone/tool"
)

// clerk is a model whose answer depends on the number of its turns alone.
type clerk struct {
	name string
	said *int
}

func (c clerk) Info() llm.Info { return llm.Info{Provider: "test", Model: c.name} }

func (c clerk) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	*c.said++
	turn := 0
	for _, m := range req.Messages {
		if m.Role == llm.RoleAssistant {
			turn++
		}
	}
	reply := says("done")
	if req.ResponseFormat != nil {
		reply = says(`{"text":"done"}`)
	}
	if turn < 3 {
		reply = calls([]string{"look", "pay", "pay"}[turn], fmt.Sprintf(`{"text":"%d"}`, turn))
	}
	return func(yield func(llm.Delta, error) bool) {
		for _, d := range reply.Deltas() {
			if !yield(d, nil) {
				return
			}
		}
		yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil)
	}
}

// mortal is a journal whose process dies: from then on it writes nothing, not even the end of the run.
type mortal struct {
	*memory
	held context.Context
	die  context.CancelCauseFunc
}

func newMortal(t memdb.T, records int) *mortal {
	m := &mortal{memory: dies(t, records)}
	m.held, m.die = context.WithCancelCause(context.Background())
	return m
}

func (m *mortal) Held(string) context.Context { return m.held }

func (m *mortal) runs(t *testing.T, p stone.Ashlar, opts journal.Options) (stone.Result, error) {
	return stone.Run(t.Context(), p, stone.Config{RunID: "r", Frontend: yes{}, Recorder: journal.Keep(m, opts)})
}

func (m *mortal) End(ctx context.Context, id string, o journal.Outcome) error {
	if m.dead() {
		return errDied
	}
	return m.memory.End(ctx, id, o)
}

// shop is a program and the changes that a new version of it has.
type shop struct {
	system, user  dag.Reader[string]
	model, name   string
	described     string
	tools         int // more tools
	schema        dag.AnyType
	reversed      bool
	asks          bool
	effects       map[string]int // how often each call was executed
	before, turns int
}

func (s *shop) pipeline() stone.Ashlar {
	effect := func(name string) agent.Middleware {
		t := tool(name, func(text string) (agent.Result, error) {
			s.effects[name+" "+text]++
			return agent.Result{Text: name + " is done"}, nil
		})
		t.Description += s.described
		return agent.Use(t)
	}
	use := []agent.Middleware{effect("look"), effect("pay")}
	if s.asks {
		use[1] = confirm.Confirm(use[1], confirm.Ask)
	}
	for i := range s.tools {
		use = append(use, effect(fmt.Sprint("more", i)))
	}
	cfg := agent.Config{System: s.system, User: s.user, Use: use}
	clerk := clerk{s.model, &s.turns}
	talk := agent.New(s.name, note, clerk, cfg)
	if s.schema != nil {
		talk = agent.New(s.name, other, clerk, cfg)
	}
	first := stone.Func0("first", check, func(context.Context) (passed, error) { s.before++; return passed{"x"}, nil })
	steps := []stone.Ashlar{first, talk}
	if s.reversed {
		slices.Reverse(steps)
	}
	return stone.Seq("all", steps...)
}

// other is note with another schema.
var other = dag.NewType[struct {
	Text string `json:"text"`
	More int    `json:"more,omitempty"`
}]("note")

// TestChangedProgram kills a run after each of its records and continues it with a changed program. No
// call that is recorded is executed again, and each change is said: it is refused before anything
// runs if the agent has started, or the run has a notice. If it is forced, what is recorded stands all the same.
func TestChangedProgram(t *testing.T) {
	const refused, noticed = "refused", "noticed"
	clock := 0
	changes := map[string]struct {
		change func(*shop)
		want   string // for an agent that has started
	}{
		"nothing":              {func(*shop) {}, ""},
		"constant prompt":      {func(s *shop) { s.system = agent.Say("be kind") }, noticed},
		"prompt with the time": {func(s *shop) { s.user = now(&clock) }, noticed},
		"prompt read from node": {func(s *shop) {
			s.user = agent.Prompt(check, func(p passed) string { return "read anew " + p.Note })
		}, refused},
		"tool description": {func(s *shop) { s.described = "!" }, refused},
		"list of tools":    {func(s *shop) { s.tools = 1 }, refused},
		"model":            {func(s *shop) { s.model = "larger" }, refused},
		"name":             {func(s *shop) { s.name = "chat" }, refused},
		"schema":           {func(s *shop) { s.schema = other }, refused},
		"order":            {func(s *shop) { s.reversed = true }, refused},
	}
	for name, tt := range changes {
		for _, approve := range []bool{false, true} {
			for died, ended := 0, false; !ended; died++ {
				mem := newMortal(t, died)
				old := shop{system: agent.Say("be brief"), user: now(&clock), model: "small", name: "talk", effects: map[string]int{}, asks: approve}
				if name != "prompt with the time" {
					old.user = agent.Say("go")
				}
				at := fmt.Sprintf("%s, approval %t, died after %d", name, approve, died)
				_, err := mem.runs(t, old.pipeline(), journal.Options{})
				if ended = err == nil; died < 11 && !errors.Is(err, errDied) || died > 40 {
					t.Fatalf("%s: %v", at, err)
				}
				recorded, began := mem.recordedCalls(t)
				steps, err := mem.Steps(t.Context(), "r")
				if err != nil {
					t.Fatal(err)
				}
				reached := name == "order" || slices.ContainsFunc(steps, func(s journal.Step) bool { return s.Path == "all/talk" })
				_ = mem.Release("r")
				mem.left = -1
				mem.held, mem.die = context.WithCancelCause(t.Context())
				next := old
				next.effects = map[string]int{}
				tt.change(&next)
				result, err := mem.runs(t, next.pipeline(), journal.Options{})
				switch {
				case tt.want == refused && !reached:
					if said := slices.ContainsFunc(result.Notices, func(n event.Notice) bool { return n.Code == terms.PipelineChanged && strings.Contains(n.Text, "all/") }); err != nil || !said {
						t.Errorf("%s: %v, notices %+v; want that it continues with the change, and says so", at, err, result.Notices)
					}
				case tt.want == refused:
					if !errors.As(err, new(*journal.ChangedError)) || len(next.effects) > 0 || next.turns > old.turns {
						t.Errorf("%s: %v, effects %v; want the change refused before anything runs", at, err, next.effects)
					}
					result, err = mem.runs(t, next.pipeline(), journal.Options{Force: true})
				}
				if err != nil {
					t.Errorf("%s: %v", at, err)
					continue
				}
				if said := slices.ContainsFunc(result.Notices, func(n event.Notice) bool { return n.Code == terms.PromptChanged && n.Path == "all/talk" }); tt.want == noticed && began && !said {
					t.Errorf("%s: the notices are %+v, want that of the prompt", at, result.Notices)
				}
				if name == "name" || name == "prompt read from node" && !began {
					continue
				}
				for _, call := range recorded {
					if next.effects[call] > 0 {
						t.Errorf("%s: %q is recorded and was executed again", at, call)
					}
				}
			}
		}
	}
}

// now is a prompt that is never twice the same.
func now(clock *int) dag.Reader[string] {
	return dag.Derive(dag.Nothing, func(struct{}) string {
		*clock++
		return "it is " + time.Unix(int64(*clock), 0).UTC().Format(time.DateTime)
	})
}

type yes struct{}

func (yes) Ask(context.Context, people.Question) (people.Answer, error) {
	return people.Answer{Response: "yes"}, nil
}

// recordedCalls returns the calls with a record, as the effects name them, and whether the opening of the
// conversation is recorded.
func (m *mortal) recordedCalls(t *testing.T) (all []string, began bool) {
	for i, name := range []string{"look 0", "pay 1", "pay 2"} {
		rec, err := m.Record(t.Context(), "r", fmt.Sprintf("all/talk/tool-%d-1", i+1), "step")
		var o struct{ Text string }
		if err == nil && json.Unmarshal(rec.Content, &o) == nil && strings.HasSuffix(o.Text, "is done") {
			all = append(all, name)
		}
	}
	_, err := m.Record(t.Context(), "r", "all/talk/opening", step.Value)
	return all, err == nil
}
