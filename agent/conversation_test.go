package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/llm"
)

// stopOnEcho is a decide function of a user: continue until a call of echo succeeded.
func stopOnEcho(_ agent.Context, advice []agent.Recommendation) agent.Recommendation {
	if slices.ContainsFunc(advice, func(r agent.Recommendation) bool { return r.Source == "echo" && !r.Failed }) {
		return agent.Recommendation{Action: agent.Continue}
	}
	return agent.Recommendation{Action: agent.Loop}
}

func halting() agent.Tool {
	return tool("halt", func(text string) (agent.Result, error) {
		return agent.Result{Text: "ok", Recommend: &agent.Recommendation{Action: agent.Halt, Reason: text}}, nil
	})
}

func quiet() agent.Tool {
	return tool("quiet", func(text string) (agent.Result, error) {
		return agent.Result{Text: "ok", Recommend: &agent.Recommendation{Action: agent.Continue}}, nil
	})
}

// TestConversations checks the messages to the model, and the outcome of the run, for
// scripted answers. It compares the last request, since the node has no conversation
// when the run fails.
func TestConversations(t *testing.T) {
	for _, test := range []struct {
		name    string
		cfg     agent.Config
		answers []any
		asked   string // the last request
		want    string // text of the node, or kind of the failure
	}{
		{
			name:    "one turn",
			answers: []any{says("hello")},
			asked:   "user: begin\n",
			want:    `{"text":"hello"}`,
		}, {
			name:    "text before a tool call is kept, and is no answer",
			answers: []any{but(calls("echo", `{"text":"a"}`), func(r *llm.Reply) { r.Text = "I look." }), says("done")},
			asked:   "user: begin\nassistant: I look.\ncall: echo {\"text\":\"a\"}\ntool: echo a\n",
			want:    `{"text":"done"}`,
		}, {
			name:    "a tool that fails goes back to the model",
			answers: []any{calls("broken", `{"text":"a"}`), says("done")},
			asked:   "user: begin\ncall: broken {\"text\":\"a\"}\ntool error: disk full\n",
			want:    `{"text":"done"}`,
		}, {
			name:    "a tool that panics goes back to the model",
			answers: []any{calls("panics", `{"text":"a"}`), says("done")},
			asked:   "user: begin\ncall: panics {\"text\":\"a\"}\ntool error: the tool \"panics\" panicked: boom\n",
			want:    `{"text":"done"}`,
		}, {
			name:    "a tool that does not exist goes back to the model",
			answers: []any{calls("functions.Echo", `{"text":"a"}`), says("done")},
			asked:   "user: begin\ncall: functions.Echo {\"text\":\"a\"}\ntool error: There is no tool \"functions.Echo\". Did you mean \"echo\"? The tools are: echo, broken, panics, halt, quiet.\n",
			want:    `{"text":"done"}`,
		}, {
			name:    "arguments that do not fit are not run",
			answers: []any{calls("panics", `{"text":7}`), says("done")},
			asked:   "user: begin\ncall: panics {\"text\":7}\ntool error: The arguments do not fit the schema of the tool, so it was not run: | text: want string, got integer 7\n",
			want:    `{"text":"done"}`,
		}, {
			name: "arguments cut off by the token limit are never run",
			answers: []any{but(calls("echo", `{"text":"a"}`, "panics", ``), func(r *llm.Reply) {
				r.ToolCalls[1].Input, r.ToolCalls[1].InputText, r.StopReason = nil, `{"text":"b`, "length"
			}), says("done")},
			asked: "user: begin\ncall: echo {\"text\":\"a\"}\ncall: panics \ntool: echo a\ntool error: The arguments of this call were cut off, so it was not run. Call the tool again, with shorter arguments.\n",
			want:  `{"text":"done"}`,
		}, {
			name:    "arguments that are null count as cut off, live and replayed",
			answers: []any{calls("panics", `null`), says("done")},
			asked:   "user: begin\ncall: panics \ntool error: The arguments of this call were cut off, so it was not run. Call the tool again, with shorter arguments.\n",
			want:    `{"text":"done"}`,
		}, {
			name:    "results come in the order of the calls",
			answers: []any{calls("echo", `{"text":"1"}`, "broken", `{"text":""}`, "echo", `{"text":"2"}`), says("done")},
			asked:   "user: begin\ncall: echo {\"text\":\"1\"}\ncall: broken {\"text\":\"\"}\ncall: echo {\"text\":\"2\"}\ntool: echo 1\ntool error: disk full\ntool: echo 2\n",
			want:    `{"text":"done"}`,
		}, {
			name:    "an empty answer is a failure",
			answers: []any{says("")},
			asked:   "user: begin\n",
			want:    string(reasons.EmptyResponse),
		}, {
			name:    "an answer of white space is empty",
			answers: []any{says(" \n")},
			asked:   "user: begin\n",
			want:    string(reasons.EmptyResponse),
		}, {
			name:    "a model that reports the empty answer itself",
			answers: []any{&llm.EmptyResponseError{}},
			asked:   "user: begin\n",
			want:    string(reasons.EmptyResponse),
		}, {
			name:    "a stream that ends half-way is an error, not an answer",
			answers: []any{&llm.TruncatedError{}},
			asked:   "user: begin\n",
			want:    string(reasons.ModelFailed),
		}, {
			name:    "a stream that closes regularly without a last delta is an error too",
			answers: []any{[]llm.Delta{{Kind: llm.Text, Text: "half an ans"}}},
			asked:   "user: begin\n",
			want:    string(reasons.ModelFailed),
		}, {
			name:    "a model that repeats itself",
			answers: []any{&llm.RepetitionExhaustedError{Attempts: 3}},
			asked:   "user: begin\n",
			want:    string(reasons.Degenerate),
		}, {
			name:    "a refusal is no answer",
			answers: []any{but(says(""), func(r *llm.Reply) { r.Refusal = "I will not." })},
			asked:   "user: begin\n",
			want:    string(reasons.ModelRefused),
		}, {
			name:    "a turn limit is a failure, not a success",
			cfg:     agent.Config{MaxTurns: 2},
			answers: []any{calls("echo", `{"text":"a"}`), but(calls("echo", `{"text":"b"}`), func(r *llm.Reply) { r.Text = "nearly" }), says("never asked")},
			asked:   "user: begin\ncall: echo {\"text\":\"a\"}\ntool: echo a\n",
			want:    string(reasons.MaxTurns),
		}, {
			name:    "an answer cut off by the token limit is sent back once",
			answers: []any{but(says("so it"), func(r *llm.Reply) { r.StopReason = "max_tokens" }), says("short")},
			asked:   "user: begin\nassistant: so it\nuser: Your answer was cut off at the limit of its length. Answer again, in fewer words.\n",
			want:    `{"text":"short"}`,
		}, {
			name: "an answer cut off twice is a failure",
			answers: []any{but(says("so it"), func(r *llm.Reply) { r.StopReason = "length" }),
				but(says("so it"), func(r *llm.Reply) { r.StopReason = "length" })},
			asked: "user: begin\nassistant: so it\nuser: Your answer was cut off at the limit of its length. Answer again, in fewer words.\n",
			want:  string(reasons.Truncated),
		}, {
			name:    "a tool says halt",
			answers: []any{calls("halt", `{"text":"enough"}`)},
			asked:   "user: begin\n",
			want:    string(reasons.Halted),
		}, {
			name:    "ContinueOnToolUse loops on any advice",
			answers: []any{calls("quiet", `{"text":""}`), says("done")},
			asked:   "user: begin\ncall: quiet {\"text\":\"\"}\ntool: ok\n",
			want:    `{"text":"done"}`,
		}, {
			name:    "ToolDirected loops only on Loop",
			cfg:     agent.Config{Decide: agent.ToolDirected},
			answers: []any{but(calls("quiet", `{"text":""}`), func(r *llm.Reply) { r.Text = "here" })},
			asked:   "user: begin\n",
			want:    `{"text":"here"}`,
		}, {
			name:    "ToolDirected continues after a tool without advice",
			cfg:     agent.Config{Decide: agent.ToolDirected},
			answers: []any{calls("echo", `{"text":"a"}`), says("done")},
			asked:   "user: begin\ncall: echo {\"text\":\"a\"}\ntool: echo a\n",
			want:    `{"text":"done"}`,
		}, {
			name:    "a loop after text alone says Continue, so that no request ends with the assistant",
			cfg:     agent.Config{Decide: stopOnEcho},
			answers: []any{says("I think"), calls("echo", `{"text":"a"}`)},
			asked:   "user: begin\nassistant: I think\nuser: Continue.\n",
			want:    `{"text":""}`,
		}, {
			name:    "a paused turn is sent again as it is",
			answers: []any{but(says("half"), func(r *llm.Reply) { r.StopReason = "pause_turn" }), says("whole")},
			asked:   "user: begin\nassistant: half\n",
			want:    `{"text":"whole"}`,
		}, {
			name: "a decide function that returns no action",
			cfg: agent.Config{Decide: func(agent.Context, []agent.Recommendation) agent.Recommendation {
				return agent.Recommendation{}
			}},
			answers: []any{says("x")},
			asked:   "user: begin\n",
			want:    "error",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.cfg.User = agent.Say("begin")
			test.cfg.Use = []agent.Middleware{
				agent.Use(echo()),
				agent.Use(tool("broken", func(string) (agent.Result, error) { return agent.Result{}, errors.New("disk full") })),
				agent.Use(tool("panics", func(string) (agent.Result, error) { panic("boom") })),
				agent.Use(halting()),
				agent.Use(quiet()),
			}
			m := model(test.answers...)
			res, err := run(t, agent.New("talk", note, m, test.cfg), stone.Config{})
			if got := outcome(t, res, err); got != test.want {
				t.Errorf("outcome %s, want %s (%v)", got, test.want, err)
			}
			if len(m.requests) == 0 {
				t.Fatal("the model was never asked")
			}
			if got := transcript(m.requests[len(m.requests)-1].Messages); got != test.asked {
				t.Errorf("the model was asked\n%s\nwant\n%s", got, test.asked)
			}
			for i, req := range m.requests {
				if last := req.Messages[len(req.Messages)-1]; last.Role == llm.RoleAssistant && !strings.Contains(test.name, "paused") {
					t.Errorf("request %d ends with the assistant", i+1)
				}
			}
		})
	}
}

// TestErrorIsTyped checks that the error of the run wraps the error of the provider.
func TestErrorIsTyped(t *testing.T) {
	_, err := run(t, agent.New("talk", note, model(&llm.HTTPError{Status: 429, RequestID: "req_1"}), agent.Config{User: agent.Say("hi")}), stone.Config{})
	var h *llm.HTTPError
	var f *stone.Failure
	if !errors.As(err, &h) || h.Status != 429 || !errors.As(err, &f) || f.Kind != reasons.ModelFailed {
		t.Errorf("got %v, want a failure %q around the HTTP error", err, reasons.ModelFailed)
	}
}

func TestSchema(t *testing.T) {
	const fits = `{"title":"crash","level":2,"owner":null}`
	misfit := "Your answer does not fit the schema: | "
	for _, test := range []struct {
		name     string
		maxTurns int
		answers  []any
		asked    string
		want     string
	}{
		{"fits", 0, []any{says(fits)}, "user: begin\n", `{"level":2,"title":"crash"}`},
		{"in a fence", 0, []any{says("```json\n" + fits + "\n```")}, "user: begin\n", `{"level":2,"title":"crash"}`},
		{"in a fence without a language", 0, []any{says("```\n" + fits + "```\n")}, "user: begin\n", `{"level":2,"title":"crash"}`},
		{"in a fence after a sentence", 0, []any{says("Here it is:\n```json\n" + fits + "\n```\nDone.")}, "user: begin\n", `{"level":2,"title":"crash"}`},
		{"in a fence that ends on the line of the text", 0, []any{says("Here:\n\n```\n" + fits + "```")}, "user: begin\n", `{"level":2,"title":"crash"}`},
		{"a schema that the model misses once", 1, []any{says("sorry"), says(fits)},
			"user: begin\nassistant: sorry\nuser: " + misfit + "(root): want JSON, got malformed text at line 1, column 1: invalid character 's' looking for beginning of value | Answer again, with JSON that fits and nothing else.\n", `{"level":2,"title":"crash"}`},
		{"a schema that the model misses twice", 9, []any{says(`{"title":"crash","level":"two","owner":null}`), says(`{}`), says(fits)},
			"user: begin\nassistant: {\"title\":\"crash\",\"level\":\"two\",\"owner\":null}\nuser: " + misfit + "level: want integer, got string \"two\" | Answer again, with JSON that fits and nothing else.\n", string(reasons.ParseFailed)},
		{"JSON that was cut off", 0, []any{but(says(`{"title":"cra`), func(r *llm.Reply) { r.StopReason = "length" }), says(fits)},
			"user: begin\nassistant: {\"title\":\"cra\nuser: Your answer was cut off at the limit of its length. Answer again, in fewer words.\n", `{"level":2,"title":"crash"}`},
		{"an integer that is written with a fraction", 0, []any{says(`{"title":"crash","level":2.0,"owner":null}`)}, "user: begin\n", `{"level":2,"title":"crash"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := model(test.answers...)
			res, err := run(t, agent.New("file", ticket, m, agent.Config{User: agent.Say("begin"), MaxTurns: test.maxTurns}), stone.Config{})
			if got := outcome(t, res, err); got != test.want {
				t.Errorf("outcome %s, want %s (%v)", got, test.want, err)
			}
			if got := transcript(m.requests[len(m.requests)-1].Messages); got != test.asked {
				t.Errorf("the model was asked\n%s\nwant\n%s", got, test.asked)
			}
			if err != nil && strings.Contains(err.Error(), "crash") {
				t.Errorf("the error quotes the answer: %v", err)
			}
			f := m.requests[0].ResponseFormat
			if f == nil || f.Name != "ticket" || !strings.Contains(string(f.Schema), `"title"`) {
				t.Errorf("response format %+v, want the schema of ticket", f)
			}
			if err == nil {
				doc, err := ticket.Of(res.Node)
				if err != nil || doc.Title != "crash" || len(conversation(t, res)) < 2 {
					t.Errorf("read back %+v, %v", doc, err)
				}
			}
		})
	}
}
