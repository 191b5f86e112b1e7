package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

var handleOf = regexp.MustCompile(`[0-9a-f]{12}`)

// lines is a tool with a long result.
func lines(limit int) agent.Tool {
	t := tool("lines", func(text string) (agent.Result, error) {
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, "%s %d é\n", text, i)
		}
		return agent.Result{Text: b.String()}, nil
	})
	t.MaxResult = limit
	return t
}

// reader is a model that makes a long result, and then calls read_result with each input, in
// which HANDLE is the handle.
func reader(got *[]string, inputs ...string) *script.Model {
	return script.Func(func(_ int, req *llm.Request) script.Answer {
		n := 0
		for _, m := range req.Messages {
			if m.Role == llm.RoleAssistant {
				n++
			}
		}
		last := req.Messages[len(req.Messages)-1].Text()
		if n == 0 {
			return script.Call("lines", `{"text":"line"}`)
		}
		*got = append(*got, last)
		if n > len(inputs) {
			return script.Text("done")
		}
		handle := ""
		for _, m := range req.Messages {
			if m.Role != llm.RoleAssistant && handle == "" {
				handle = handleOf.FindString(m.Text())
			}
		}
		input := strings.ReplaceAll(inputs[n-1], "HANDLE", handle)
		return script.Calls(llm.ToolCall{ID: fmt.Sprint(n), Name: "read_result", Input: json.RawMessage(input)})
	})
}

func talk(m llm.Model, use ...agent.Middleware) stone.Ashlar {
	return agent.New("talk", note, m, agent.Config{User: agent.Say("begin"), Use: use})
}

// TestLongResult checks what the model gets of a long result, and how it reads the rest.
func TestLongResult(t *testing.T) {
	for name, tt := range map[string]struct {
		input string
		want  string
	}{
		"a part":      {`{"handle":"HANDLE","offset":9,"limit":9}`, "\nline 1 \n[bytes 9 to 17 of 11890; read on with offset 17]"},
		"the end":     {`{"handle":"HANDLE","offset":11880,"limit":100}`, "this is the end"},
		"in a letter": {`{"handle":"HANDLE","offset":8,"limit":1}`, "é\n[bytes 7 to 9 of 11890; read on with offset 9]"},
		"too far":     {`{"handle":"HANDLE","offset":11890}`, "has only 11890 bytes"},
		"a search":    {`{"handle":"HANDLE","search":"99 é"}`, "offset 1084: line 99 é\noffset 2284: line 199 é\n"},
		"more":        {`{"handle":"HANDLE","search":"line"}`, "[there are more: search on with offset "},
		"nothing":     {`{"handle":"HANDLE","search":"word"}`, "does not occur"},
		"a typo":      {`{"handle":"0123"}`, `no result has the handle "0123"`},
		"no bounds":   {`{"handle":"HANDLE","limit":1000000}`, "do not fit the schema"},
		"by default":  {`{"handle":"HANDLE"}`, "[bytes 0 to 11890 of 11890; this is the end]"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			m := reader(&got, tt.input)
			if _, err := run(t, talk(m, agent.Use(lines(20))), stone.Config{}); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(got[0], "line 0 é\nline 1 é\n\n[cut: these are the first 20 of 11890 bytes]\n[the whole result is kept: call read_result with the handle ") {
				t.Errorf("the model got %s", got[0])
			}
			if !strings.Contains(got[1], tt.want) || len(got[1]) > 70<<10 {
				t.Errorf("read %s, want %s", got[1], tt.want)
			}
			if tools := m.Requests()[0].Tools; len(tools) != 1 {
				t.Errorf("the first request offers %v", tools)
			}
			if tools := m.Requests()[1].Tools; len(tools) != 2 || tools[1].Name != "read_result" {
				t.Errorf("the second request offers %v", tools)
			}
		})
	}
}

// TestLongResultResume kills a run with a kept result after every record in turn. The result is in a node beside the agent's, and
// the resumed run reads it without a call of the tool.
func TestLongResultResume(t *testing.T) {
	var ran int
	pipeline := func() stone.Ashlar {
		count := lines(20)
		work := count.Run
		count.Run = func(ctx context.Context, in json.RawMessage) (agent.Result, error) {
			ran++
			return work(ctx, in)
		}
		var got []string
		return talk(reader(&got, `{"handle":"HANDLE","offset":5000,"limit":30}`), agent.Use(count))
	}
	whole := dies(t, -1)
	want, err := run(t, pipeline(), stone.Config{Recorder: whole, RunID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := want.DAG.All("agent/result")
	if err != nil || len(nodes) != 1 || !strings.Contains(nodes[0].JSON(), `line 999 é`) {
		t.Fatalf("kept %v (%v)", nodes, err)
	}
	for died := range whole.log {
		mem := dies(t, died)
		if _, err := run(t, pipeline(), stone.Config{Recorder: mem, RunID: "r"}); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		mem.left, ran = -1, 0
		had := slices.Contains(mem.log, "step talk/tool-1-1")
		res, err := run(t, pipeline(), stone.Config{Recorder: mem, RunID: "r"})
		if err != nil || res.Node.ID() != want.Node.ID() || had && ran != 0 {
			t.Errorf("resumed after %d records: %v, the tool ran %d times", died, err, ran)
		}
	}
}

// TestLongResultBounds checks that a result beyond the bounds fails, and says so.
func TestLongResultBounds(t *testing.T) {
	for name, tt := range map[string]struct{ size, calls, failed int }{
		"at the bound": {8 << 20, 1, 0},
		"too long":     {8<<20 + 1, 1, 1},
		"all together": {8 << 20, 10, 2},
	} {
		t.Run(name, func(t *testing.T) {
			big := strings.Repeat("x", tt.size)
			act := tool("act", func(string) (agent.Result, error) { return agent.Result{Text: big}, nil })
			act.Parallel, act.MaxResult = true, 10
			pairs := slices.Repeat([]string{"act", `{"text":"x"}`}, tt.calls)
			m := model(calls(pairs...), says("done"))
			res, err := run(t, talk(m, agent.Use(act)), stone.Config{})
			if err != nil {
				t.Fatal(err)
			}
			failed := 0
			for _, m := range conversation(t, res) {
				if m.IsError && strings.Contains(m.Text(), "the rest of its result is lost") {
					failed++
				}
			}
			if failed != tt.failed {
				t.Errorf("%d results were lost, want %d", failed, tt.failed)
			}
		})
	}
}

// TestLongResultSecret checks that a secret at the cut is in neither part of a result.
func TestLongResultSecret(t *testing.T) {
	const secret = "hunter2hunter2"
	leak := tool("lines", func(string) (agent.Result, error) {
		return agent.Result{Text: strings.Repeat("a", 15) + secret + strings.Repeat("b", 100)}, nil
	})
	leak.MaxResult = 20
	var got []string
	res, err := run(t, talk(reader(&got, `{"handle":"HANDLE"}`), agent.Use(leak)), stone.Config{Recorder: journal.Redact(secret)})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(got, "\n")
	for n := range res.DAG.Nodes() {
		all += n.JSON()
	}
	if strings.Contains(all, "hunter2h") || strings.Contains(all, "aah") || !strings.Contains(all, "[redacted]") {
		t.Errorf("the model got %s", all)
	}
}

// TestLongResultLater checks that a handle survives a compaction, and works in the next run of a
// chat.
func TestLongResultLater(t *testing.T) {
	echo, long := agent.Use(echo()), agent.Use(lines(20))
	compact := agent.Compact(agent.CompactConfig{MaxTokens: 500, Keep: 1})
	first := model(calls("lines", `{"text":"line"}`), calls("echo", `{"text":"`+strings.Repeat("x", 3000)+`"}`), calls("echo", `{"text":"y"}`), says("one"))
	res, err := run(t, chatter(first, echo, long, compact), stone.Config{Input: next(t, dag.DAG{}, "a")})
	if err != nil {
		t.Fatal(err)
	}
	said := transcript(conversation(t, res))
	if strings.Contains(said, "[cut:") || !strings.Contains(said, "can still be read with read_result: | "+handleOf.FindString(said)+", lines, 11890 bytes]") {
		t.Fatalf("the conversation is\n%s", said)
	}
	second := model(calls("read_result", `{"handle":"`+handleOf.FindString(said)+`","offset":5000}`), says("two"))
	if res, err = run(t, chatter(second, echo, long), stone.Config{Input: next(t, res.DAG, "b")}); err != nil {
		t.Fatal(err)
	}
	if said = transcript(conversation(t, res)); !strings.Contains(said, "[bytes 4999 to 11890 of 11890; this is the end]") {
		t.Errorf("the conversation is\n%s", said)
	}
}

// TestLongResultOfPipeline checks a long result, and a long failure, of a pipeline that is a tool.
func TestLongResultOfPipeline(t *testing.T) {
	for name, fail := range map[string]bool{"a result": false, "a failure": true} {
		t.Run(name, func(t *testing.T) {
			find := stone.Func("find", question, note, func(context.Context, questionDoc) (agent.Text, error) {
				if fail {
					return agent.Text{}, stone.Fail("odd", "%s", strings.Repeat("long ", 100))
				}
				return agent.Text{Text: strings.Repeat("long ", 100)}, nil
			})
			short := func(t *agent.Tool) { t.MaxResult = 10 }
			m := model(calls("find", `{"text":"1"}`), says("done"))
			res, err := run(t, talk(m, agent.AsTool("find", "", find, question, note, short)), stone.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if nodes, err := res.DAG.All("agent/result"); err != nil || len(nodes) != 1 || slices.Contains(res.DAG.Types(), dag.Failure.Name()) {
				t.Errorf("kept %v (%v); the DAG has %v", nodes, err, res.DAG.Types())
			}
		})
	}
}

// TestLongResultName checks that no tool takes the name of the one that reads results.
func TestLongResultName(t *testing.T) {
	a := talk(model(), agent.Use(tool("read_result", func(string) (agent.Result, error) { return agent.Result{}, nil })))
	if _, err := run(t, a, stone.Config{}); err == nil || !strings.Contains(err.Error(), "is reserved for the tool that reads long results") {
		t.Errorf("got %v", err)
	}
}

// TestLongSecret checks a result that is short enough without its secret: it is not cut.
func TestLongSecret(t *testing.T) {
	secret := strings.Repeat("hunter2", 10)
	leak := tool("lines", func(string) (agent.Result, error) { return agent.Result{Text: "it is " + secret}, nil })
	leak.MaxResult = 20
	res, err := run(t, talk(model(calls("lines", `{"text":"x"}`), says("done")), agent.Use(leak)), stone.Config{Recorder: journal.Redact(secret)})
	if err != nil {
		t.Fatal(err)
	}
	if got := conversation(t, res)[2].Text(); got != "it is [redacted]" {
		t.Errorf("the model got %s", got)
	}
}
