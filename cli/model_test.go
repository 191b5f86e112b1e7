//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

const testKey = "sk-test-0123456789"

// call runs stone model call with these arguments.
func call(ctx context.Context, stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Run(ctx, cli.Config{
		Parts: parts, Pipeline: cli.FromArgument, Name: "stone", Args: append([]string{"model", "call"}, args...),
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs,
	})
	return code, out.String(), errs.String()
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"} {
		t.Setenv(name, testKey)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// body answers every request with the same bytes.
func body(contentType, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Request-Id", "req_7")
		io.WriteString(w, text)
	})
}

// compact is JSON on one line, without the usage as it came.
func compact(t *testing.T, raw string) string {
	t.Helper()
	var v map[string]any
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if usage, ok := v["usage"].(map[string]any); ok {
		delete(usage, "raw")
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A call uses what runs use: the provider of the configuration with its address, key and fields, or the default model.
func TestModelCallConfigured(t *testing.T) {
	var got []string
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model string `json:"model"`
			Seed  int    `json:"seed"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		got = append(got, fmt.Sprintln(body.Model, body.Seed, r.Header.Get("Authorization")))
		http.Error(w, "no", http.StatusTeapot)
	}))
	t.Setenv("LOCAL_KEY", "local")
	t.Chdir(t.TempDir())
	write := func(name, format string) {
		if err := os.WriteFile(name, fmt.Appendf(nil, format, url), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(".stone", 0o700); err != nil {
		t.Fatal(err)
	}
	write(".stone/stone.edn", `{:providers {:local {:protocol :openai, :url %q, :key {:env "LOCAL_KEY"}, :extra {"seed" 7}}}
 :models [{:model "priced", :provider :local, :date "2026-11-21"}]
 :capabilities {:model/small {:cap/kind :llm, :provider :local, :model "asked"}}}`)
	write(".stone/settings.json", `{"url": %q, "model": "chosen"}`)
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"--model model/small", 1, "asked 7 Bearer local"},
		{"--model asked", 1, "asked 7 Bearer local"},
		{"--model priced", 1, "priced 7 Bearer local"},
		{"--provider local --model other", 1, "other 7 Bearer local"},
		{"--provider local --model other --extra {\"seed\":8}", 1, "other 8 Bearer local"},
		{"", 1, "chosen 0 "},
		{"--model other", 1, "other 0 "},
		{"--url " + url + " --model asked", 1, "asked 0 Bearer " + testKey},
		{"--provider locl --model other", 2, "Error: --provider locl: want one of local, anthropic, gemini, openai, openai-chat, openai-responses: did you mean local?"},
	} {
		got = nil
		code, _, stderr := call(t.Context(), "", append(strings.Fields(tt.args), "--trust", "hi")...)
		if got = append(got, stderr); code != tt.code || strings.TrimSuffix(got[0], "\n") != tt.want {
			t.Errorf("%s: exit code %d, %q, want %q", tt.args, code, got, tt.want)
		}
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	got = nil
	if code, _, stderr := call(t.Context(), "", "--model", "asked", "hi"); code != 2 || got != nil || !strings.Contains(stderr, "is not trusted") {
		t.Errorf("without trust: exit code %d, stderr %q, asked %q", code, stderr, got)
	}
}

func TestModelCallReplies(t *testing.T) {
	in, out := 7, 5
	whole := script.Answer{Reply: llm.Reply{
		Text: "It is <blue>.", Reasoning: "Light scatters.", ID: "id_1", RequestID: "req_1", Model: "m-1",
		ToolCalls: []llm.ToolCall{{ID: "c1", Name: "look", Input: json.RawMessage(`{"n":9007199254740993}`)}},
		Usage:     llm.Usage{InputTokens: &in, OutputTokens: &out},
	}}
	for _, tt := range []struct {
		name   string
		answer script.Answer
		code   int
		want   string // of both protocols, STOP and CALLS being their own words
		stderr string
	}{
		{"all of it", whole, 0, `{"error":null,"id":"id_1","model":"m-1","reasoning":"Light scatters.","request_id":"req_1","stop_reason":CALLS,"text":"It is \u003cblue\u003e.",` +
			`"tool_calls":[{"id":"c1","input":{"n":9007199254740993},"name":"look"}],"usage":{"input_tokens":7,"output_tokens":5}}`, ""},
		{"little", script.Text("Yes."), 0, `{"error":null,"id":ID,"model":"m","reasoning":"","stop_reason":STOP,"text":"Yes.","tool_calls":[],"usage":{"input_tokens":null,"output_tokens":null}}`, ""},
		{"a status", script.Answer{Reply: llm.Reply{RequestID: "req_2"}, Err: &llm.HTTPError{Status: 429, Body: `{"error":{"message":"too many"}}`, RetryAfter: time.Hour}}, 1,
			`{"error":{"body":"{\"error\":{\"message\":\"too many\"}}","kind":"http","message":"llm: HTTP status 429: too many; the server asks to wait 1h0m0s (request req_2)","request_id":"req_2","status":429},` +
				`"reasoning":"","request_id":"req_2","stop_reason":null,"text":"","tool_calls":[],"usage":{"input_tokens":null,"output_tokens":null}}`,
			"Error: llm: HTTP status 429: too many; the server asks to wait 1h0m0s (request req_2)\n"},
		{"the key said again", script.Answer{Err: &llm.HTTPError{Status: 401, Body: "no such key: " + testKey}}, 1,
			`{"error":{"body":"no such key: [redacted]","kind":"http","message":"llm: HTTP status 401: no such key: [redacted]","status":401},` +
				`"reasoning":"","stop_reason":null,"text":"","tool_calls":[],"usage":{"input_tokens":null,"output_tokens":null}}`,
			"Error: llm: HTTP status 401: no such key: [redacted]\n"},
		{"the key said again in the text", script.Text("You sent " + testKey), 0, `{"error":null,"id":ID,"model":"m","reasoning":"","stop_reason":STOP,"text":"You sent [redacted]","tool_calls":[],"usage":{"input_tokens":null,"output_tokens":null}}`, ""},
		{"an error in the stream", script.Answer{Reply: llm.Reply{Text: "It i"}, Err: &llm.ProviderError{Message: "overloaded", Type: "overloaded_error"}}, 1,
			`{"error":{"kind":"provider","message":"llm: the provider reports: overloaded (overloaded_error)","type":"overloaded_error"},` +
				`"id":ID,"model":"m","reasoning":"","stop_reason":null,"text":"It i","tool_calls":[],"usage":{"input_tokens":null,"output_tokens":null}}`,
			"Error: llm: the provider reports: overloaded (overloaded_error)\n"},
		{"a cut stream", script.Answer{Reply: llm.Reply{Text: "It i", RequestID: "req_3"}, Err: errors.New("cut")}, 1,
			`{"error":{"kind":"cut-short","message":"llm: the stream was cut short before the answer's end (request req_3)","request_id":"req_3"},` +
				`"id":ID,"model":"m","reasoning":"","request_id":"req_3","stop_reason":null,"text":"It i","tool_calls":[],"usage":{"input_tokens":null,"output_tokens":null}}`,
			"Error: llm: the stream was cut short before the answer's end (request req_3)\n"},
	} {
		for provider, own := range map[string]*strings.Replacer{
			"openai":           strings.NewReplacer("STOP", `"stop"`, "CALLS", `"tool_calls"`, "ID", `"chatcmpl-script"`),
			"gemini":           strings.NewReplacer("STOP", `"STOP"`, "CALLS", `"STOP"`, "ID", `"gemini-script"`),
			"anthropic":        strings.NewReplacer("STOP", `"end_turn"`, "CALLS", `"tool_use"`, "ID", `"msg_script"`),
			"openai-responses": strings.NewReplacer("STOP", `"completed"`, "CALLS", `"completed"`, "ID", `"resp_script"`),
		} {
			t.Run(tt.name+"/"+provider, func(t *testing.T) {
				model := script.New(tt.answer)
				url := serve(t, model)
				code, stdout, stderr := call(t.Context(), "", "--provider", provider, "--url", url, "--model", "m", "Why?")
				if got, want := compact(t, stdout), own.Replace(tt.want); code != tt.code || got != want || stderr != tt.stderr {
					t.Errorf("exit code %d, stderr %q, stdout\n%s\nwant %d, %q\n%s", code, stderr, got, tt.code, tt.stderr, want)
				}
				if n := len(model.Requests()); n != 1 {
					t.Errorf("%d requests, want one", n)
				}
				if strings.Contains(stdout+stderr, testKey) {
					t.Error("the key is printed")
				}
			})
		}
	}
}

func TestModelCallRequest(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := file("one.json", `{"name":"look","description":"Looks.","schema":{"type":"object"}}`)
	two := file("two.json", ` [{"name":"a","input_schema":{"type":"object","properties":{}}},{"name":"b","parameters":{}},{"name":"c"}]`)
	schema := file("schema.json", `{"type":"object","properties":{"x":{"type":"integer"}}}`)
	model := script.Func(func(int, *llm.Request) script.Answer { return script.Text("{}") })
	var bodies []map[string]any
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var v map[string]any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Error(err)
		}
		if r.Header.Get("Authorization") != "Bearer "+testKey && r.Header.Get("X-Api-Key") != testKey && r.Header.Get("X-Goog-Api-Key") != testKey {
			t.Error("no key in the headers")
		}
		bodies = append(bodies, v)
		if !bytes.Contains(raw, []byte(`"seed":12345678901234567890`)) {
			t.Errorf("a number was changed: %s", raw)
		}
		r.Body = io.NopCloser(bytes.NewReader(raw))
		model.ServeHTTP(w, r)
	}))
	for i, provider := range []string{"openai", "anthropic", "openai-responses", "gemini"} {
		code, _, stderr := call(t.Context(), "Read\nthis.\n", "--provider="+provider, "--url="+url, "--model=m", "--system=Be brief.", "--max-tokens=99",
			"--tool="+one, "--tool", two, "--schema", schema, `--extra={"seed":12345678901234567890,"nested":{"a":[1]}}`, "-")
		if code != 0 || stderr != "" {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		req := model.Requests()[i]
		tools, err := json.Marshal(req.Tools)
		if err != nil {
			t.Fatal(err)
		}
		want := `[{"name":"look","description":"Looks.","schema":{"type":"object","properties":{}}},{"name":"a","schema":{"type":"object","properties":{}}},` +
			`{"name":"b","schema":{"type":"object","properties":{}}},{"name":"c","schema":{"type":"object","properties":{}}}]`
		// A foreign server may not enforce the schema, so the model is told it.
		if told := "Be brief.\n\nYour final answer is JSON"; !strings.HasPrefix(req.System, told) || !strings.Contains(req.System, `"integer"`) || req.Model != "m" || req.MaxTokens != 99 || req.Messages[0].Text() != "Read\nthis." || string(tools) != want {
			t.Errorf("%+v, tools %s", req, tools)
		}
		if req.ResponseFormat == nil || !strings.Contains(string(req.ResponseFormat.Schema), "integer") || fmt.Sprint(bodies[i]["nested"]) != "map[a:[1]]" {
			t.Errorf("format %+v, body %v", req.ResponseFormat, bodies[i])
		}
	}
}

func TestModelCallUsage(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	asked := false
	url := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	at := func(args ...string) []string { return append([]string{"--url", url, "--model", "m", "hi"}, args...) }
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no prompt", []string{"--model", "m"}, "PROMPT is missing: want stone model call PROMPT [flags]"},
		{"two prompts", at("there"), `unexpected argument "there": want stone model call PROMPT [flags], and text with spaces in quotes`},
		{"an empty prompt", []string{"--model", "m", " "}, "PROMPT is missing: want stone model call PROMPT [flags]"},
		{"an empty prompt from standard input", []string{"--model", "m", "-"}, "PROMPT is empty: give the text to send to the model"},
		{"no model", []string{"hi"}, "--model is missing: name a model"},
		{"a provider", at("--provider", "acme"), "--provider acme: want one of anthropic, gemini, openai, openai-chat, openai-responses"},
		{"a limit", at("--max-tokens", "-1"), "--max-tokens -1: want 1 or more"},
		{"a URL", []string{"--url", "localhost:80", "--model", "m", "hi"}, `openai: bad Config: URL "localhost:`},
		{"extra is not JSON", at("--extra", "{"), "--extra: not JSON: unexpected end of JSON input"},
		{"extra is a list", at("--extra", "[1]"), "--extra: [1] is not a JSON object"},
		{"extra is null", at("--extra", "null"), "--extra: null is not a JSON object"},
		{"extra is reserved", at("--extra", `{"messages":[]}`), "openai: bad Config: Extra must not set messages"},
		{"no tool file", at("--tool", filepath.Join(dir, "none")), "--tool " + filepath.Join(dir, "none") + ": open "},
		{"tool is not JSON", at("--tool", file("t1", "name: x")), "--tool " + filepath.Join(dir, "t1") + ": tool 1: not JSON: invalid character"},
		{"tools are not JSON", at("--tool", file("t2", `[{"name":"x"}`)), "--tool " + filepath.Join(dir, "t2") + ": not JSON: unexpected end of JSON input"},
		{"a tool is a string", at("--tool", file("t3", `[{"name":"x"},"y"]`)), "--tool " + filepath.Join(dir, "t3") + `: tool 2: "y" is not a JSON object`},
		{"a tool without a name", at("--tool", file("t4", `{"description":"x"}`)), "--tool " + filepath.Join(dir, "t4") + ": tool 1: it has no name"},
		{"a tool with an unknown field", at("--tool", file("t5", `{"name":"x","inputSchema":{}}`)),
			"--tool " + filepath.Join(dir, "t5") + `: tool 1: json: unknown field "inputSchema": want name, description, and schema (or input_schema, or parameters)`},
		{"a tool with two schemas", at("--tool", file("t6", `{"name":"x","schema":{},"parameters":{}}`)),
			"--tool " + filepath.Join(dir, "t6") + ": tool 1: it has two schemas: want one of schema, input_schema and parameters"},
		{"a tool whose schema is a string", at("--tool", file("t7", `{"name":"x","schema":"object"}`)),
			"--tool " + filepath.Join(dir, "t7") + `: tool 1: its schema: "object" is not a JSON object`},
		{"a schema that is a list", at("--schema", file("s1", `[]`)), "--schema " + filepath.Join(dir, "s1") + ": [] is not a JSON object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := call(t.Context(), "\n", tt.args...)
			if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "Error: "+tt.want) || strings.Count(stderr, "\n") != 1 || asked {
				t.Errorf("exit code %d, asked %v, stdout %q, stderr %q\nwant %q", code, asked, stdout, stderr, tt.want)
			}
		})
	}
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	if code, _, stderr := call(t.Context(), "", "--model", "m", "hi"); code != 2 || !strings.Contains(stderr, "no key for https://api.openai.com") {
		t.Errorf("without a key: exit code %d, stderr %q", code, stderr)
	}
	var errs bytes.Buffer
	if code := cli.Run(t.Context(), cli.Config{Parts: parts, Pipeline: cli.FromArgument, Name: "stone", Args: []string{"model"}, Stderr: &errs}); code != 2 || errs.String() != "Error: stone model needs a command: list, caps, call\n" {
		t.Errorf("exit code %d, stderr %q", code, errs.String())
	}
}

func TestModelCallRaw(t *testing.T) {
	const sse = "text/event-stream"
	for _, tt := range []struct {
		name, provider string
		handler        http.Handler
		code           int
		want           string // "" is that all of the body comes
		stderr         string
	}{
		{"a stream, and what comes after its end", "openai",
			body(sse, ": hello\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\r\n\r\ndata: [DONE]\n\n: bye "+strings.Repeat(".", 100_000)), 0, "", ""},
		{"a cut stream", "anthropic", body(sse, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"x\"}}\n\nevent: cont"), 1, "",
			"Error: llm: the stream was cut short before the answer's end (request req_7)\n"},
		{"an error in the stream", "openai", body(sse, "data: {\"error\":{\"message\":\"overloaded\"}}\n\n"), 1, "", "Error: llm: the provider reports: overloaded (request req_7)\n"},
		{"no stream at all", "openai", body("text/html", "<html>"), 1, "", "Error: llm: the answer breaks the protocol: got an HTML page instead of an event stream; check the URL (request req_7)\n"},
		{"a status", "openai", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			io.WriteString(w, "no\x00thing "+strings.Repeat("x", 200_000))
		}), 1, "no\x00thing " + strings.Repeat("x", 200_000), "Error: llm: HTTP status 503: no"},
		{"the key", "openai", body(sse, "data: {\"error\":{\"message\":\"key "+testKey+"\"}}\n\n"), 1, "data: {\"error\":{\"message\":\"key [redacted]\"}}\n\n", "Error: llm: the provider reports: key [redacted]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := serve(t, tt.handler)
			if tt.want == "" {
				rec := httptest.NewRecorder()
				tt.handler.ServeHTTP(rec, nil)
				tt.want = rec.Body.String()
			}
			code, stdout, stderr := call(t.Context(), "", "--raw", "--provider", tt.provider, "--url", url, "--model", "m", "hi")
			if code != tt.code || stdout != tt.want || !strings.HasPrefix(stderr, tt.stderr) || tt.stderr == "" && stderr != "" {
				t.Errorf("exit code %d, %d bytes %.200q, stderr %q\nwant %d, %d bytes, %q", code, len(stdout), stdout, stderr, tt.code, len(tt.want), tt.stderr)
			}
		})
	}
}

// sendHalf sends the first half of an answer and waits until the client has read it: the comments
// that follow exceed all buffers in between.
func sendHalf(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n")
	comment := ": " + strings.Repeat(".", 1<<15) + "\n"
	for range 16 << 20 / len(comment) {
		io.WriteString(w, comment)
	}
	w.(http.Flusher).Flush()
}

func TestModelCallEnds(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	half := make(chan bool, 1)
	halfway := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // or the server does not see that the client is gone
		sendHalf(w)
		if r.URL.Path == "/abort/v1/chat/completions" {
			panic(http.ErrAbortHandler)
		}
		half <- true
		<-r.Context().Done()
	})
	url := serve(t, halfway)
	for _, tt := range []struct{ name, url, kind, text string }{
		{"no server", gone.URL, "connect", ""},
		{"the connection breaks", url + "/abort", "cut-short", "half"},
		{"canceled", url, "canceled", "half"},
	} {
		for _, raw := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, raw), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					select {
					case <-half:
						cancel()
					case <-ctx.Done():
					}
				}()
				code, stdout, stderr := call(ctx, "", "--url", tt.url, "--model", "m", fmt.Sprintf("--raw=%v", raw), "hi")
				if code != 1 || !strings.HasPrefix(stderr, "Error: llm: ") || !strings.Contains(stdout, tt.text) {
					t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
				}
				if !raw && !strings.Contains(compact(t, stdout), `"kind":"`+tt.kind+`"`) {
					t.Errorf("want kind %s: %s", tt.kind, stdout)
				}
			})
		}
	}
}

// TestModelCallInterrupted sends the signal of a Ctrl-C in the midst of an answer.
func TestModelCallInterrupted(t *testing.T) {
	started := make(chan bool, 1)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		sendHalf(w)
		started <- true
		<-r.Context().Done()
	}))
	cmd := exec.CommandContext(t.Context(), "stone", "model", "call", "--url", url, "--model", "m", "hi")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-started
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if got := compact(t, out.String()); code(err) != 1 || !strings.Contains(got, `"kind":"canceled"`) || !strings.Contains(got, `"text":"half"`) {
		t.Errorf("%v: %s", err, got)
	}
}

// TestModelCallRecorded prints what real servers sent.
func TestModelCallRecorded(t *testing.T) {
	for _, provider := range []string{"openai", "anthropic"} {
		expected := need.Recorded(t, "data/streams/"+provider+"/EXPECTED.json")[0]
		dir := filepath.Dir(expected)
		data, err := os.ReadFile(expected)
		if err != nil {
			t.Fatal(err)
		}
		var wants map[string]struct {
			Text       string
			StopReason *string         `json:"stop_reason"`
			ToolCalls  json.RawMessage `json:"tool_calls"`
			Error      *string
			ErrorKind  string `json:"error_kind"`
			Tolerated  bool   `json:"error_acceptable"`
		}
		if err := json.Unmarshal(data, &wants); err != nil {
			t.Fatal(err)
		}
		for name, want := range wants {
			t.Run(name, func(t *testing.T) {
				stream, err := os.ReadFile(filepath.Join(dir, name+".sse"))
				if err != nil {
					t.Fatal(err)
				}
				url := serve(t, body("text/event-stream", string(stream)))
				code, stdout, stderr := call(t.Context(), "", "--provider", provider, "--url", url, "--model", "m", "hi")
				var got struct {
					Text       string
					StopReason *string         `json:"stop_reason"`
					ToolCalls  json.RawMessage `json:"tool_calls"`
					Error      *struct {
						Kind      string
						RequestID string `json:"request_id"`
					}
				}
				if err := json.Unmarshal([]byte(stdout), &got); err != nil {
					t.Fatalf("%v: %s", err, stdout)
				}
				if _, text, ok := strings.Cut(want.Text, "</think>"); ok {
					want.Text = text
				}
				if got.Text != want.Text || fmt.Sprint(show(t, got.ToolCalls)) != fmt.Sprint(show(t, want.ToolCalls)) {
					t.Errorf("text %q, calls %s\nwant %q, %s", got.Text, got.ToolCalls, want.Text, want.ToolCalls)
				}
				failed := code == 1 && got.Error != nil && got.Error.RequestID == "req_7" && stderr != ""
				if want.Error != nil && (!failed || got.Error.Kind != want.ErrorKind) || want.Error == nil && code != 0 && !want.Tolerated {
					t.Errorf("exit code %d, stderr %q, error %+v, want kind %q", code, stderr, got.Error, want.ErrorKind)
				}
			})
		}
	}
}

// show makes calls comparable.
func show(t *testing.T, calls json.RawMessage) []any {
	t.Helper()
	var out []any
	if err := json.Unmarshal(calls, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestModelCallOnTerminal runs the command on a terminal, where it says how far the
// answer has come, and takes that back at the end.
func TestModelCallOnTerminal(t *testing.T) {
	need.Program(t, "script") // of util-linux: a terminal
	url := serve(t, script.New(script.Answer{Wait: 300 * time.Millisecond, Reply: llm.Reply{Text: strings.Repeat("blue ", 20)}}))
	cmd := exec.CommandContext(t.Context(), "script", "-qec", "stone model call --url "+url+" --model sky hi >out.json", "/dev/null")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "TERM=xterm")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if s := string(said); !strings.HasPrefix(s, "\r\x1b[Ksky: 0 bytes in 0s") || !strings.HasSuffix(s, "\r\x1b[K") {
		t.Errorf("on the terminal: %q", s)
	}
	out, err := os.ReadFile(filepath.Join(cmd.Dir, "out.json"))
	if err != nil || !strings.Contains(compact(t, string(out)), `"error":null`) {
		t.Errorf("%v: %s", err, out)
	}
}
