package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm"
)

func png(n int) *llm.Media {
	return &llm.Media{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n" + strings.Repeat("x", n)), Name: "a.png"}
}

func drawing(draw func() (agent.Result, error)) agent.Middleware {
	return agent.Use(agent.Tool{Tool: llm.Tool{Name: "draw"}, Run: func(context.Context, json.RawMessage) (agent.Result, error) { return draw() }})
}

// deaf is a model whose protocol takes no sound.
type deaf struct{ llm.Model }

func (deaf) CheckMedia(_ llm.Role, m *llm.Media) error {
	if strings.HasPrefix(m.Type, "audio/") {
		return fmt.Errorf("media of type %q: only pictures", m.Type)
	}
	return m.Check()
}

// TestMedia shows an agent a picture in its prompt and in the result of a tool. The picture is in
// the conversation, survives a replay and is a line in events.
func TestMedia(t *testing.T) {
	m := model(calls("draw", `{}`), says("a cat"))
	shots := drawing(func() (agent.Result, error) {
		return agent.Result{Text: "drawn", Media: []*llm.Media{png(2), {Type: "audio/wav", Data: []byte("wav")}, {Type: "image/png", Data: make([]byte, llm.MaxMedia)}}}, nil
	})
	cfg := agent.Config{
		User:  agent.Say("What is it?"),
		Media: dag.Derive(dag.Nothing, func(struct{}) []*llm.Media { return []*llm.Media{png(1)} }),
		Use:   []agent.Middleware{shots},
	}
	var told strings.Builder
	watch := event.Func(slog.LevelDebug, func(e event.Event) {
		raw, err := json.Marshal(e.Data)
		if err != nil {
			t.Error(err)
		}
		told.Write(raw)
	})
	mem := dies(t, -1)
	first, err := run(t, agent.New("see", note, deaf{m}, cfg), stone.Config{Recorder: mem, RunID: "r", Watch: watch})
	if err != nil {
		t.Fatal(err)
	}
	again, err := run(t, agent.New("see", note, deaf{m}, cfg), stone.Config{Recorder: mem, RunID: "r"})
	if err != nil || again.Node.ID() != first.Node.ID() {
		t.Fatalf("replayed: %v", err)
	}
	var shown []string
	for _, msg := range conversation(t, first) {
		for _, media := range msg.Media() {
			shown = append(shown, fmt.Sprintf("%s: %s", msg.Role, media))
		}
	}
	if got, want := strings.Join(shown, "; "), "user: a.png, image/png, 9 bytes; tool: a.png, image/png, 10 bytes"; got != want {
		t.Errorf("shown %s\nwant %s", got, want)
	}
	result := conversation(t, first)[2].Text()
	for _, want := range []string{"drawn\n", `[audio/wav, 3 bytes: not shown: media of type "audio/wav": only pictures]`, "[image/png, 20.0 MB: not shown: the result has too much media]"} {
		if !strings.Contains(result, want) {
			t.Errorf("the model is told %q, without %q", result, want)
		}
	}
	if s := told.String(); !strings.Contains(s, "[a.png, image/png, 9 bytes]") || !strings.Contains(s, "[a.png, image/png, 10 bytes]") || strings.Contains(s, "iVBORw0KGg") {
		t.Errorf("events have the bytes, or no line for them: %.2000s", s)
	}
}

// TestFailedCallShowsNothing checks that a failed call has text alone, as providers want.
func TestFailedCallShowsNothing(t *testing.T) {
	broken := drawing(func() (agent.Result, error) {
		return agent.Result{Media: []*llm.Media{png(1)}}, fmt.Errorf("no ink")
	})
	res, err := run(t, agent.New("see", note, model(calls("draw", `{}`), says("nothing")), agent.Config{User: agent.Say("Draw."), Use: []agent.Middleware{broken}}), stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if msg := conversation(t, res)[2]; len(msg.Media()) != 0 || !msg.IsError {
		t.Errorf("%+v", msg)
	}
}

// TestCompactCountsTokens checks that pictures do not count as text, and that the length which the
// last reply reported counts more than an estimate.
func TestCompactCountsTokens(t *testing.T) {
	talk := []llm.Message{llm.User("task"), llm.Assistant("a"), llm.User("see", png(2_000_000)), llm.Assistant("b"), llm.User("on")}
	if got := compacted(t, agent.CompactConfig{MaxTokens: 5000}, talk); len(got) != len(talk) {
		t.Errorf("a picture of 2 MB counts as text: %s", transcript(got))
	}
	for _, c := range []struct {
		reported int
		left     bool // something is left out
	}{{100, false}, {3000, true}} {
		usage := func(r *llm.Reply) { r.Usage.InputTokens = &c.reported }
		text := `{"text":"` + strings.Repeat("x", 2000) + `"}`
		m := model(but(calls("echo", text), usage), but(calls("echo", text), usage), but(calls("echo", text), usage), says("done"))
		res, err := run(t, agent.New("talk", note, m, agent.Config{User: agent.Say("begin"), Use: []agent.Middleware{
			agent.Use(echo()), agent.Compact(agent.CompactConfig{MaxTokens: 2500, Keep: 1}),
		}}), stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(transcript(conversation(t, res)), "left out here"); got != c.left {
			t.Errorf("%d tokens reported: left out %v, want %v", c.reported, got, c.left)
		}
	}
}

// TestPipelineShowsMedia has a pipeline as a tool whose result has a picture.
func TestPipelineShowsMedia(t *testing.T) {
	type order struct {
		What string `json:"what"`
	}
	type drawing struct {
		Title   string     `json:"title"`
		Picture *llm.Media `json:"picture"`
	}
	ordered, drawn := dag.NewType[order]("order"), dag.NewType[drawing]("drawing")
	draw := stone.Func("draw", ordered, drawn, func(_ context.Context, o order) (drawing, error) { return drawing{o.What, png(1)}, nil })
	m := model(calls("draw", `{"what":"a cat"}`), says("nice"))
	res, err := run(t, agent.New("see", note, m, agent.Config{User: agent.Say("Draw."), Use: []agent.Middleware{
		agent.AsTool("draw", "Draws.", draw, ordered, drawn),
	}}), stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	msg := conversation(t, res)[2]
	if got, want := msg.Text(), `{"picture":"[media 1: a.png, image/png, 9 bytes]","title":"a cat"}`; got != want || len(msg.Media()) != 1 {
		t.Errorf("%s with %d media, want %s", got, len(msg.Media()), want)
	}
}
