package marks_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	plantool "github.com/stonelayer/stone/tool/plan"
)

const (
	mails  = `{"nodes":[{"op":"tool","tool/id":"look","effects":{"allowed":["net/get"]},"as":"page"},{"op":"tool","tool/id":"mail","input":{"text":{"slot/id":"page"}},"effects":{"allowed":["mail/send"]},"as":"sent"},{"op":"emit","input":"mailed"}]}`
	shows  = `{"nodes":[{"op":"tool","tool/id":"look","effects":{"allowed":["net/get"]},"as":"page"},{"op":"emit","input":{"slot/id":"page"}}]}`
	marked = `nodes[1] 1:88: text with the mark foreign reaches the effect "mail/send": page → sent`
)

// A model that wrote a plan which the policy refuses is told where the text goes, before any of the plan runs, and corrects it.
func TestRefusedPlanIsRepaired(t *testing.T) {
	all := []string{"net/get", "mail/send"}
	tests := map[string]struct {
		model *script.Model
		build func(w *world, m llm.Model) stone.Ashlar
	}{
		"of an agent": {
			script.New(script.Call("run_plan", `{"plan":`+mails+`}`), script.Call("run_plan", `{"plan":`+shows+`}`), script.Text("done")),
			func(w *world, m llm.Model) stone.Ashlar {
				return agent.New("assistant", Reply, m, agent.Config{User: Task, Use: []agent.Middleware{plantool.Tool("run_plan", w.app(nil), plantool.Options{Effects: all})}})
			},
		},
		"of a capability": {
			script.New(script.Text(mails), script.Text(shows)),
			func(w *world, m llm.Model) stone.Ashlar {
				app := w.app(nil)
				planner := model.New(call.Metadata{ID: "plan/model", Intents: []string{"plan"}, CanProduce: []string{call.Plan}, Effects: all}, model.Config{Model: m, Prompt: "Plan."})
				app.Registry = call.NewRegistry(append(w.caps(), planner)...)
				return call.New("planner", Sent, call.Spec{Applicator: app, Intent: "plan", Effects: all, Input: call.From(Task), Requires: call.Requires{Reply: call.Plan}})
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := &world{texts: map[string]string{"web/a": "News."}}
			_, err := stone.Run(context.Background(), tt.build(w, tt.model), stone.Config{Input: dag.Of(Task.With("go")), Policy: office})
			requests := tt.model.Requests()
			if err != nil || len(requests) < 2 || len(w.done()) > 0 {
				t.Fatalf("%v, %d requests, done %q", err, len(requests), w.done())
			}
			if last := requests[1].Messages[len(requests[1].Messages)-1].Text(); !strings.Contains(last, marked) {
				t.Errorf("the model is told %s", last)
			}
		})
	}
}
