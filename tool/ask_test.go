package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/tool/fs"
)

var note = dag.NewType[agent.Text]("note")

// writing is an agent that writes files below dir after a person has approved it.
func writing(dir string, model llm.Model, more ...agent.Middleware) stone.Ashlar {
	root := fs.Root{Dir: dir}
	use := []agent.Middleware{tool.Confirm(fs.Write(root), tool.Ask), tool.Confirm(fs.Edit(root), tool.Ask)}
	return agent.New("fix", note, model, agent.Config{User: agent.Say("go"), Use: append(use, more...)})
}

// process runs p as a new process of one durable run would, without anyone to ask.
func process(t *testing.T, j journal.Journal, p stone.Ashlar) (stone.Result, error) {
	t.Helper()
	return stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{})})
}

// waits checks that a process of the run ends with open questions, and returns them.
func waits(t *testing.T, j journal.Journal, p stone.Ashlar, want int) []journal.Question {
	t.Helper()
	if _, err := process(t, j, p); !errors.Is(err, kind.Waiting) {
		t.Fatalf("the run ended with %v, want one that waits", err)
	}
	all, err := j.Questions(t.Context(), "r")
	open := slices.DeleteFunc(all, func(q journal.Question) bool { return !q.Open() })
	if err != nil || len(open) != want {
		t.Fatalf("%d open questions, %v; want %d: %+v", len(open), err, want, open)
	}
	return open
}

func answer(t *testing.T, j journal.Journal, question, response string) {
	t.Helper()
	if err := journal.Answer(t.Context(), j, "r", question, ask.Answer{Response: response, By: "token ops"}); err != nil {
		t.Fatal(err)
	}
}

func call(name, input string) llm.ToolCall {
	return llm.ToolCall{ID: name, Name: name, Input: json.RawMessage(input)}
}

func content(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// results are the texts of the tools in the last request to the model.
func results(m *script.Model) string {
	var all []string
	requests := m.Requests()
	for _, msg := range requests[len(requests)-1].Messages {
		if msg.Role == llm.RoleTool {
			all = append(all, msg.Text())
		}
	}
	return strings.Join(all, "\n")
}

// TestAskEndsAndResumes checks two calls of one turn: the process ends at each of them, and
// the resumed run continues there and asks the model nothing again.
func TestAskEndsAndResumes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\nthree\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	calls := script.Calls(call("edit_file", `{"path":"a.txt","old_string":"two","new_string":"zwei"}`),
		call("write_file", `{"path":"b.txt","content":"new\n"}`))
	calls.Reply.Text = "The word is English."
	model := script.New(calls, script.Text("done"))
	j := memdb.New(t)
	p := writing(dir, model)

	q := waits(t, j, p, 1)[0]
	want := "fix wants to call edit_file:\n" +
		"  change a.txt:\n  @@ line 1\n   one\n  -two\n  +zwei\n   three\n" +
		"The user asked:\n  go\nThe model said:\n  The word is English.\n" +
		"(always and never decide for all later calls of edit_file by fix)"
	if q.Text != want || q.Name != "fix/edit_file" || q.Path != "fix/tool-1-1" {
		t.Errorf("asked %s at %s:\n%s\nwant\n%s", q.Name, q.Path, q.Text, want)
	}
	if c := q.Call; c == nil || c.ID != "edit_file" || c.Tool != "edit_file" || c.Request != "go" || c.Said != "The word is English." ||
		string(c.Input) != `{"new_string":"zwei","old_string":"two","path":"a.txt"}` {
		t.Errorf("the call of the question is %+v", c)
	}
	if err := journal.Answer(t.Context(), j, "r", q.Name, ask.Answer{Response: "perhaps"}); err == nil {
		t.Error("an answer that is none is accepted")
	}
	answer(t, j, q.Name, "yes")
	if q = waits(t, j, p, 1)[0]; !strings.Contains(q.Text, "new file b.txt of 4 bytes:\n  +new\n") {
		t.Errorf("asked\n%s", q.Text)
	}
	answer(t, j, q.Name, "no: b.txt is not yours")
	if _, err := process(t, j, p); err != nil {
		t.Fatal(err)
	}
	if got := results(model); got != "edited a.txt at line 2\nwrite_file did not run: a person refused this call: b.txt is not yours" {
		t.Errorf("the model was told\n%s", got)
	}
	if a, b := content(t, dir, "a.txt"), content(t, dir, "b.txt"); a != "one\nzwei\nthree\n" || b != "" || len(model.Requests()) != 2 {
		t.Errorf("a.txt %q, b.txt %q, %d requests", a, b, len(model.Requests()))
	}
}

// TestAskStanding checks that always and never are remembered by later processes.
func TestAskStanding(t *testing.T) {
	dir := t.TempDir()
	ran := 0
	wipe := tool.Confirm(tool.Func("wipe", "Removes all.", func(context.Context, struct{}) (string, error) { ran++; return "wiped", nil }), tool.Ask)
	model := script.New(
		script.Call("write_file", `{"path":"a","content":"1"}`),
		script.Call("wipe", `{}`),
		script.Calls(call("write_file", `{"path":"b","content":"2"}`), call("wipe", `{}`)),
		script.Text("done"))
	j := memdb.New(t)
	p := writing(dir, model, wipe)

	waits(t, j, p, 1)
	answer(t, j, "fix/write_file", "always")
	waits(t, j, p, 1)
	answer(t, j, "fix/wipe", "never")
	if _, err := process(t, j, p); err != nil { // which has seen only the answer never
		t.Fatal(err)
	}
	refusal := "wipe did not run: a person has refused all its calls. Continue without it."
	if got := results(model); got != "wrote 1 bytes to a\n"+refusal+"\nwrote 1 bytes to b\n"+refusal || ran != 0 {
		t.Errorf("%d wiped; the model was told\n%s", ran, got)
	}
	questions, err := j.Questions(t.Context(), "r")
	if err != nil || len(questions) != 4 { // the later ones are kept too, with the answers to the first
		t.Fatalf("%d questions, %v, want 4: %+v", len(questions), err, questions)
	}
	for i, want := range []string{"always", "never", "always", "never"} {
		q := questions[i]
		if q.Response != want || q.By != "token ops" || q.Given.IsZero() != (i < 2) || i >= 2 && !q.Given.Equal(questions[i-2].Answered) {
			t.Errorf("%s: %q by %q, given %v; want %q by token ops, given when the first was answered", q.Path, q.Response, q.By, q.Given, want)
		}
	}
}

// TestAskTogether checks that the questions of parallel calls are open at the same time,
// that always answers the others, and that it does not hold for another agent.
func TestAskTogether(t *testing.T) {
	var ran atomic.Int32
	type input struct{ Text string }
	note2 := dag.NewType[agent.Text]("note2")
	say := tool.Confirm(tool.Func("say", "Says it.", func(_ context.Context, in input) (string, error) {
		ran.Add(1)
		return in.Text, nil
	}), tool.Ask)
	say.Tool.Parallel = true
	model := script.New(script.Calls(call("say", `{"Text":"a"}`), call("say", `{"Text":"b"}`)), script.Text("done"),
		script.Call("say", `{"Text":"c"}`), script.Text("done"))
	p := stone.Seq("all",
		agent.New("fix", note, model, agent.Config{User: agent.Say("go"), Use: []agent.Middleware{say}}),
		agent.New("check", note2, model, agent.Config{User: agent.Say("go"), Use: []agent.Middleware{say}}))
	j := memdb.New(t)
	open := waits(t, j, p, 2)
	if open[0].Name != "fix/say" || open[1].Name != "fix/say" {
		t.Errorf("open: %+v", open)
	}
	answer(t, j, open[1].Path, "always")
	if q := waits(t, j, p, 1)[0]; q.Name != "check/say" || ran.Load() != 2 {
		t.Errorf("%d ran, %s is asked", ran.Load(), q.Name)
	}
}

// TestAskChanged checks that an answer does not count for a change that was not shown.
func TestAskChanged(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	model := script.New(script.Call("write_file", `{"path":"a.txt","content":"new\n"}`), script.Text("done"))
	j := memdb.New(t)
	p := writing(dir, model)
	waits(t, j, p, 1)
	answer(t, j, "fix/write_file", "yes")
	if err := os.WriteFile(file, []byte("precious\xff\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	q := waits(t, j, p, 1)[0]
	if !strings.Contains(q.Text, "which is not text") || q.Problem == "" || content(t, file) != "precious\xff\n" {
		t.Errorf("asked again, because %q:\n%s", q.Problem, q.Text)
	}
	waits(t, j, p, 1)
	answer(t, j, "fix/write_file", "yes")
	if _, err := process(t, j, p); err != nil || content(t, file) != "new\n" {
		t.Errorf("%v, %q", err, content(t, file))
	}
}

// TestAskLive checks the answers of a person who is there.
func TestAskLive(t *testing.T) {
	for _, tt := range []struct{ answer, want, told string }{
		{"yes", "new", "wrote 3 bytes to a"},
		{"always", "new", "wrote 3 bytes to a"},
		{"no", "", "write_file did not run: it needs a person's approval, which was not given. Continue without it, or say why it is needed."},
		{"", "", "write_file did not run: it needs a person's approval, which was not given. Continue without it, or say why it is needed."},
		{"never", "", "write_file did not run: a person has refused all its calls. Continue without it."},
	} {
		dir := t.TempDir()
		model := script.New(script.Call("write_file", `{"path":"a","content":"new"}`), script.Text("done"))
		people := make(ask.Channel, 1)
		go func() { q := <-people; q.Answer(tt.answer, "ada") }()
		if _, err := stone.Run(t.Context(), writing(dir, model), stone.Config{Frontend: people}); err != nil {
			t.Fatal(err)
		}
		if got := content(t, dir, "a"); got != tt.want || results(model) != tt.told {
			t.Errorf("%q: the file has %q, the model was told %q", tt.answer, got, results(model))
		}
	}
	dir := t.TempDir()
	model := script.New(script.Call("write_file", `{"path":"a","content":"new"}`), script.Text("done"))
	if _, err := stone.Run(t.Context(), writing(dir, model), stone.Config{}); !errors.Is(err, kind.NoFrontend) || content(t, dir, "a") != "" {
		t.Errorf("without a frontend: %v", err)
	}
	// A call that would fail bothers no person: the model is told.
	model = script.New(script.Call("edit_file", `{"path":"none","old_string":"a","new_string":"b"}`), script.Text("done"))
	if _, err := stone.Run(t.Context(), writing(dir, model), stone.Config{}); err != nil || !strings.Contains(results(model), "none") {
		t.Errorf("%v, %s", err, results(model))
	}
}

// A recording frontend cancels every question.
type recording struct{ asked []ask.Question }

func (r *recording) Ask(_ context.Context, q ask.Question) (ask.Answer, error) {
	r.asked = append(r.asked, q)
	return ask.Answer{}, nil
}

// TestAskShown checks the question about calls whose tools have no preview.
func TestAskShown(t *testing.T) {
	many := strings.Repeat("x", 20_000)
	for _, tt := range []struct {
		input string
		want  []string
	}{
		{`{}`, []string{"  (no arguments)\n"}},
		{`{"b":"text","a":[1,{"c":null}]}`, []string{"  a: [\n    1,\n", "\n  b: text\n"}},
		{`{"a":"one\nb: two\n"}`, []string{"  a: \n    one\n    b: two\nThe user asked:\n  go\n("}},
		{`{"a\nb":"x"}`, []string{`  "a\nb": x`}},
		{`{"a":"` + many + `"}`, []string{"  a: " + many + "\n"}},
	} {
		free := agent.Use(agent.Tool{Tool: llm.Tool{Name: "free"}, Run: func(context.Context, json.RawMessage) (agent.Result, error) { return agent.Result{}, nil }})
		var r recording
		p := agent.New("fix", note, script.New(script.Call("free", tt.input), script.Text("done")),
			agent.Config{User: agent.Say("go"), Use: []agent.Middleware{tool.Confirm(free, tool.Ask)}})
		if _, err := stone.Run(t.Context(), p, stone.Config{Frontend: &r}); err != nil || len(r.asked) != 1 {
			t.Fatal(err, len(r.asked))
		}
		for _, want := range tt.want {
			if !strings.Contains(r.asked[0].Text, want) {
				t.Errorf("%.50s: asked\n%.400s\nwant %q", tt.input, r.asked[0].Text, want)
			}
		}
	}
	if _, err := tool.Ask.Approve(t.Context(), tool.Call{}); err == nil {
		t.Error("outside a run nobody can be asked")
	}
}

// A person approves every write of the agent, or says why not.
func ExampleAsk() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	model := script.New( // a real one is openai.New or anthropic.New
		script.Call("write_file", `{"path":"a.txt","content":"hello\n"}`),
		script.Text("I may not write."),
	)
	fix := agent.New("fix", note, model, agent.Config{
		User: agent.Say("Write a greeting."),
		Use:  []agent.Middleware{tool.Confirm(fs.Write(fs.Root{Dir: dir}), tool.Ask)},
	})

	questions := make(ask.Channel)
	go func() {
		q := <-questions
		fmt.Println(q.Text)
		fmt.Printf("%q\n", q.Choices)
		q.Answer("no: say it in German", "ada")
	}()
	if _, err := stone.Run(context.Background(), fix, stone.Config{Frontend: questions}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(results(model))
	// Output:
	// fix wants to call write_file:
	//   new file a.txt of 6 bytes:
	//   +hello
	// The user asked:
	//   Write a greeting.
	// (always and never decide for all later calls of write_file by fix)
	// ["yes" "no" "no: …" "always" "never"]
	// write_file did not run: a person refused this call: say it in German
}

// TestAskUnattended checks that Validate warns of a tool that asks if no one can answer.
func TestAskUnattended(t *testing.T) {
	p := writing(t.TempDir(), script.New(script.Text("done")))
	want := `[no-frontend] fix: no one answers the question "fix/write_file": set Config.Frontend, or a journal in which it can wait`
	found := stone.Validate(p, stone.Given{Unattended: true})
	if len(found) != 2 || found[0].String() != want || !found[0].Warning {
		t.Errorf("got %v, want %s, and edit_file", found, want)
	}
	for _, f := range stone.Validate(p, stone.Given{}) {
		t.Error(f)
	}
	own := tool.Always
	asks := tool.Ask // in own words
	asks.Approve = func(ctx context.Context, c tool.Call) (tool.Decision, error) { return tool.Ask.Approve(ctx, c) }
	wrapped := agent.New("fix", note, script.New(script.Text("done")), agent.Config{User: agent.Say("go"),
		Use: []agent.Middleware{tool.Confirm(fs.Write(fs.Root{Dir: t.TempDir()}), asks)}})
	if found := stone.Validate(wrapped, stone.Given{Unattended: true}); len(found) != 1 || found[0].String() != want {
		t.Errorf("got %v, want %s", found, want)
	}
	if got := tree.Questions(wrapped); len(got) != 1 || got[0].Name != "fix/write_file" {
		t.Errorf("the questions are %+v", got)
	}
	quiet := agent.New("fix", note, script.New(script.Text("done")), agent.Config{User: agent.Say("go"),
		Use: []agent.Middleware{tool.Confirm(fs.Write(fs.Root{Dir: t.TempDir()}), own)}})
	for _, f := range stone.Validate(quiet, stone.Given{Unattended: true}) {
		t.Error(f)
	}
}
