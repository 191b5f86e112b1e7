package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/x/ui/internal/agui"
	"github.com/stonelayer/stone/x/ui/internal/uistream"

	"github.com/stonelayer/stone/dag"
)

// A leaf that ran the agent fails after the agent was done: clients that watch are told that its text does not hold.
func TestRetractedAfterItsLeaf(t *testing.T) {
	checked := dag.NewType[agent.Text]("checked")
	mason := talker("mason", answer, says("Slate is RED."))
	outer := stone.Leaf("outer", checked, func(ctx context.Context, d dag.DAG) (*dag.Node, error) {
		if out := stone.In(ctx).RunChild(mason, d); out.InFlight() {
			return nil, out.Cause()
		}
		return nil, errors.New("slate is not red")
	}, stone.Queries(message), stone.Children(stone.Walk{}.Reads().InOrder(mason)))
	p := stone.Rescue("either", outer, talker("second", checked, says("Slate is grey.")))
	log := &turn.Log{Roles: map[string]turn.Role{"mason": turn.Answers, "second": turn.Answers}}
	ui := &uistream.Stream{Run: "r", Message: "m"}
	ag := &agui.Stream{Input: agui.Input{Thread: "t", Run: "a", Messages: []json.RawMessage{json.RawMessage(`{"id":"u1","role":"user","content":"slate"}`)}}, Name: "r"}
	var sentUI, sentAG []map[string]any
	tell := event.All(log, event.Func(event.LevelDelta, func(event.Event) {
		parts, _ := log.Now()
		sentUI = append(sentUI, ui.Next(parts)...)
		sentAG = append(sentAG, ag.Next(parts)...)
	}))
	input, err := message.Append(dag.DAG{}, "slate")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Watch: tell, Input: input}); err != nil {
		t.Fatal(err)
	}
	parts, _ := log.Now()
	void := false
	for _, p := range parts {
		void = void || p.Text == "Slate is RED." && p.State == turn.Void
	}
	if !void {
		t.Fatalf("the log does not take the first answer back: %+v", parts)
	}
	has := func(all []map[string]any, what string) bool {
		text, _ := json.Marshal(all)
		return strings.Contains(string(text), what)
	}
	if has(sentAG, "Slate is RED.") && !has(sentAG, "MESSAGES_SNAPSHOT") {
		t.Errorf("AG-UI: the client has the text that was taken back, and no snapshot without it:\n%s", lines(sentAG))
	}
	if has(sentUI, "Slate is RED.") && !has(sentUI, "retracted") {
		t.Errorf("AI SDK: the client has the text that was taken back, and nothing says so:\n%s", lines(sentUI))
	}
}

func lines(all []map[string]any) (text string) {
	for _, e := range all {
		one, _ := json.Marshal(e)
		text += string(one) + "\n"
	}
	return text
}
