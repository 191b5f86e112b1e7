package ui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/x/ui/internal/agui"
	"github.com/stonelayer/stone/x/ui/internal/uistream"
)

var update = flag.Bool("update", false, "write the transcripts")

type order struct {
	Stone string `json:"stone"`
}

type page struct {
	Title string `json:"title"`
}

var (
	message  = dag.NewType[string]("message")
	answer   = dag.NewType[agent.Text]("answer")
	notes    = dag.NewType[agent.Text]("notes")
	pages    = dag.NewType[page]("page")
	approval = dag.NewType[stone.Answer]("approval")
)

// calls answers a message of the user with calls, and their results with a text.
func calls(text string, calls ...llm.ToolCall) llm.Model {
	return script.Func(func(_ int, req *llm.Request) script.Answer {
		if req.Messages[len(req.Messages)-1].Role == llm.RoleTool {
			return script.Text("Done.")
		}
		return script.Answer{Reply: llm.Reply{Text: text, Reasoning: "Let me think.", ToolCalls: calls}}
	})
}

func says(text string) llm.Model {
	return script.Func(func(int, *llm.Request) script.Answer { return script.Text(text) })
}

func call(name, stone string) llm.ToolCall {
	return llm.ToolCall{ID: "call_" + stone, Name: name, Input: json.RawMessage(fmt.Sprintf(`{"stone": %q}`, stone))}
}

func talker(name string, out dag.Type[agent.Text], model llm.Model, use ...agent.Middleware) stone.Ashlar {
	return agent.New(name, out, model, agent.Config{User: message, Use: use})
}

// look fails for marble.
var look = tool.Func("look", "Looks.", func(_ context.Context, o order) (string, error) {
	if o.Stone == "marble" {
		return "", errors.New("there is no marble")
	}
	return o.Stone + " is grey", nil
}, tool.Effects())

var buy = tool.Confirm(tool.Func("buy", "Buys.", func(_ context.Context, o order) (string, error) { return "bought " + o.Stone, nil }, tool.Effects("net")), tool.Ask)

// pipelines are what the transcripts are about. Each is answered with the responses, one for each time that it waits.
var pipelines = map[string]struct {
	pipeline  stone.Ashlar
	roles     map[string]turn.Role
	responses []string
}{
	"text":      {talker("mason", answer, says("Slate is grey.")), nil, nil},
	"tools":     {talker("mason", answer, calls("I look. ", call("look", "slate"), call("look", "marble")), look), nil, nil},
	"approval":  {talker("mason", answer, calls("", call("buy", "slate")), buy), nil, []string{"yes"}},
	"refusal":   {talker("mason", answer, calls("", call("buy", "slate")), buy), nil, []string{"no: too dear"}},
	"approvals": {talker("mason", answer, calls("", call("buy", "slate"), call("buy", "chalk")), buy), nil, []string{"no: too dear", "yes"}},
	"rejected": {agent.New("mason", answer, script.Func(func(_ int, req *llm.Request) script.Answer {
		if len(req.Messages) == 1 {
			return script.Text("Bad.")
		}
		return script.Text("Good.")
	}), agent.Config{User: message, Adversary: stone.Func("judge", answer, notes, func(_ context.Context, a agent.Text) (agent.Text, error) {
		if a.Text == "Bad." {
			return a, stone.Fail("rude", "be polite")
		}
		return a, nil
	})}), nil, nil},
	"thinks": {stone.Seq("both", talker("notes", notes, says("Grey.")), agent.New("mason", answer, says("Slate is grey."), agent.Config{User: agent.Prompt(notes, func(n agent.Text) string { return n.Text })})),
		map[string]turn.Role{"notes": turn.Thinks, "mason": turn.Answers}, nil},
	"typed": {agent.New("mason", pages, says(`{"title":"Slate"}`), agent.Config{User: message}), map[string]turn.Role{}, nil},
	"failed": {stone.Func("mason", message, answer, func(context.Context, string) (agent.Text, error) {
		return agent.Text{}, stone.Fail("broken", "no slate")
	}), nil, nil},
	"asks": {stone.Ask("approve", message, approval, func(text string) string { return "Publish " + text + "?" }, stone.Choices("yes", "no")),
		map[string]turn.Role{}, []string{"yes"}},
}

// TestTranscripts holds what both protocols send of a run to testdata. A viewer that comes late, in the last part of each
// transcript, gets no text that was taken back.
func TestTranscripts(t *testing.T) {
	for name, c := range pipelines {
		t.Run(name, func(t *testing.T) {
			if c.roles == nil {
				c.roles = map[string]turn.Role{"mason": turn.Answers}
			}
			got := transcript(t, c.pipeline, c.roles, c.responses)
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// teller is either stream.
type teller interface {
	Start() []map[string]any
	Next([]turn.Part) []map[string]any
	End(api.Run, []turn.Part) []map[string]any
}

func transcript(t *testing.T, p stone.Ashlar, roles map[string]turn.Role, responses []string) []byte {
	var out bytes.Buffer
	write := func(kind string, events []map[string]any) {
		for _, e := range events {
			name := e["type"]
			delete(e, "type")
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%s %v %s\n", kind, name, text)
		}
	}
	store, started := memdb.New(t), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	input, err := message.Append(dag.DAG{}, "slate")
	if err != nil {
		t.Fatal(err)
	}
	seen := turn.Seen{}
	for again := 0; ; again++ {
		recorded := func(path string) json.RawMessage {
			r, err := store.Record(context.Background(), "r", path, "step")
			if err != nil {
				t.Error(err)
			}
			return r.Content
		}
		log := &turn.Log{Roles: roles, Recorded: recorded}
		ui := &uistream.Stream{Run: "r", Message: "m", Seen: seen}
		ag := &agui.Stream{Input: agui.Input{Request: turn.Request{Seen: seen}, Thread: "t", Run: fmt.Sprint("a", again), Messages: []json.RawMessage{json.RawMessage(`{"id":"u1","role":"user","content":"slate"}`)}}, Name: "r"}
		write("ui  ", ui.Start())
		write("agui", ag.Start())
		tell := event.All(log, event.Func(event.LevelDelta, func(event.Event) {
			parts, _ := log.Now()
			write("ui  ", ui.Next(parts))
			write("agui", ag.Next(parts))
		}))
		cfg := stone.Config{RunID: "r", Watch: tell, Now: func() time.Time { return started }, Recorder: journal.Keep(store, journal.Options{Resume: again > 0})}
		if again == 0 {
			cfg.Input = input
		}
		_, _ = stone.Run(t.Context(), p, cfg)
		log.End()
		info, err := store.Find(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		parts, _ := log.Now()
		run := api.Run{ID: "r", State: info.State, Failure: info.Failure}
		if info.State == journal.Done {
			n, err := store.Node(t.Context(), "r", info.Node.String())
			if err != nil {
				t.Fatal(err)
			}
			node := api.Node(n)
			run.Result = &node
		}
		questions, err := store.Questions(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range questions {
			if q.Open() {
				parts = append(parts, turn.Part{Kind: turn.Ask, ID: q.Path, Question: &q})
			}
		}
		ends := func(kind string, to teller) {
			write(kind, to.Next(parts))
			write(kind, to.End(run, parts))
		}
		ends("ui  ", ui)
		ends("agui", ag)
		if info.State != journal.Waiting {
			fmt.Fprintf(&out, "\n# a viewer that comes late\n")
			ends("ui  ", &uistream.Stream{Run: "r"})
			ends("agui", &agui.Stream{Name: "r"})
			return out.Bytes()
		}
		for _, p := range parts {
			if p.Kind != turn.Tool || p.Started {
				seen.Add(turn.ID("r", p.ID))
			}
			if p.Output != nil {
				seen.AddResult(turn.ID("r", p.ID))
			}
		}
		for _, q := range slices.DeleteFunc(questions, func(q journal.Question) bool { return !q.Open() }) {
			fmt.Fprintf(&out, "\n# %s\n", responses[again])
			if err := journal.Answer(t.Context(), store, "r", q.Path, ask.Answer{Response: responses[again]}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A viewer of a turn goes over to its record, in which the arguments of calls are written in another way. What was sent
// is not sent again.
func TestRecordedArguments(t *testing.T) {
	for name, input := range map[string]string{"shorter": `{"stone":"<slate>"}`, "longer": `{"stone":"\u003cslate\u003e"}`} {
		written, output := `{"stone": "<slate>"}`, "bought slate"
		live := []turn.Part{{Kind: turn.Tool, ID: "mason/tool-1-1", Turn: "mason/turn-1", Tool: "buy", Text: written, Input: json.RawMessage(written)}}
		recorded := slices.Clone(live)
		recorded[0].Text, recorded[0].Input, recorded[0].Output, recorded[0].State = input, json.RawMessage(input), &output, turn.Done
		bad := turn.Part{Kind: turn.Text, ID: "mason/turn-2/text", Turn: "mason/turn-2", Text: "Bad."}
		void := bad
		void.State = turn.Void
		for _, to := range []teller{&uistream.Stream{Run: "r"}, &agui.Stream{Name: "r"}} {
			var arguments string
			var snapshot []any
			send := func(parts []turn.Part) {
				for _, e := range to.Next(parts) {
					switch e["type"] {
					case "TOOL_CALL_ARGS":
						arguments += e["delta"].(string)
					case "tool-input-delta":
						arguments += e["inputTextDelta"].(string)
					case "MESSAGES_SNAPSHOT":
						snapshot = e["messages"].([]any)
					}
				}
			}
			send(live)
			send(recorded)
			send(append(recorded, bad))
			send(append(recorded, void))
			if arguments != written {
				t.Errorf("%s, %T: the arguments %s", name, to, arguments)
			}
			if _, ag := to.(*agui.Stream); ag && !strings.Contains(fmt.Sprint(snapshot), input) {
				t.Errorf("%s: the messages %v", name, snapshot)
			}
		}
	}
}

// Ids of questions are read back.
func TestQuestionID(t *testing.T) {
	q := journal.Question{Path: "a/b~2/ask#1", Version: "v"}
	run, path, version, ok := turn.Question(turn.QuestionID("c-turn-1", &q))
	if run != "c-turn-1" || path != q.Path || version != "v" || !ok {
		t.Errorf("%q %q %q %v", run, path, version, ok)
	}
	for _, bad := range []string{"", "x", "x~y", "x#y", "x~y#"} {
		if _, _, _, ok := turn.Question(bad); ok {
			t.Errorf("%q is a question", bad)
		}
	}
}

// Who answers in a message is kept whole as far as it fits, and no other message is taken for it.
func TestBy(t *testing.T) {
	ids := []string{"m1", "m", "1", "x in message m1", strings.Repeat("é", 300), strings.Repeat("é", 301)}
	for _, who := range []string{"user ada", "", strings.Repeat("é", 200), "ada in message m1"} {
		for _, id := range ids {
			by := turn.By(who, id)
			if len(by) > ask.MaxBy || !utf8.ValidString(by) || len(id) < 3 && turn.MessageOf(by) != id {
				t.Errorf("%q in %q is %q", who, id, by)
			}
			for _, other := range ids {
				if turn.In(by, other) != (id == other) {
					t.Errorf("%q came in %q", by, other)
				}
			}
		}
	}
}

// A run that says too much stops being told, and does not fill the memory.
func TestBounds(t *testing.T) {
	log := &turn.Log{Roles: map[string]turn.Role{"p": turn.Answers}}
	send := func(path string, d event.Data) { log.Watch(t.Context(), event.Event{Path: path, Name: "p", Data: d}) }
	send("p", event.StepStarted{Form: "leaf"})
	for i := range 10_000 {
		send(fmt.Sprintf("p/turn-%d", i), event.Delta{Source: "m", Attempt: 1, Text: strings.Repeat("x", 1<<10)})
	}
	parts, _ := log.Now()
	size := 0
	for _, p := range parts {
		size += len(p.Text)
	}
	if len(parts) > 4096 || size > 8<<20+1<<10 {
		t.Errorf("%d parts, %d bytes", len(parts), size)
	}
}
