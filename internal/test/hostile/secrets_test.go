package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/examples/audit"
	"github.com/stonelayer/stone/examples/cascade"
	"github.com/stonelayer/stone/examples/fix"
	"github.com/stonelayer/stone/internal/test/eventtest"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/tool"
)

// The keys of the user. They have what JSON and URLs escape.
const (
	modelKey   = `sk-Zq8"w/<Vn3+Ty6=Kp1-Xr4Lb9`
	serverKey  = `hk-Rt5&Ue/Hj2"Gf8=Ds1+Aq7Pl0`
	commandKey = `ck-Bv6 Cx/Nm3"Mk9=Jh4+Wl5Oy2`
)

var allKeys = []string{modelKey, serverKey, commandKey}

// forms are the spellings in which a hostile server, program or model repeats a key.
func forms(key string) []string {
	once, _ := json.Marshal(key)
	twice, _ := json.Marshal(string(once))
	bare, _ := strings.CutPrefix(strings.ReplaceAll(string(once), `\u003c`, "<"), `"`)
	all := []string{key, string(once), strings.TrimSuffix(bare, `"`), string(twice), url.QueryEscape(key), url.PathEscape(key), hex.EncodeToString([]byte(key))}
	for _, before := range []string{"", "k", "ke", "key:"} {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(before+key+"!")), base64.URLEncoding.EncodeToString([]byte(before+key+"!")))
	}
	return all
}

// said is a text that contains a key in all its forms.
func said(key string) string { return strings.Join(forms(key), " ; ") }

// leaked returns a part of a key, in any of its forms, that a text contains. A part of 10
// bytes is one: half a key is enough to guess the rest.
func leaked(text string) string {
	const part = 10
	for _, key := range allKeys {
		for _, form := range forms(key) {
			form = strings.Trim(form, `"\`)
			for at := 4; at+part+4 <= len(form); at++ { // base64 has bits of its neighbours at its ends
				if strings.Contains(text, form[at:at+part]) {
					return form[at : at+part]
				}
			}
		}
	}
	return ""
}

// searched searches the output of a process, and every file below the project, its user's
// home and temporary files.
func (p *project) searched(what string, r result) {
	p.Helper()
	for name, text := range map[string]string{"stdout": r.stdout, "stderr": r.stderr} {
		if part := leaked(text); part != "" {
			p.Errorf("%s: %s has %q:\n%.2000s", what, name, part, text)
		}
	}
	dirs := []string{p.dir}
	for _, v := range p.env {
		if name, value, _ := strings.Cut(v, "="); name == "HOME" || name == "TMPDIR" {
			dirs = append(dirs, value)
		}
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if part := leaked(string(data)); part != "" {
				p.Errorf("%s: %s has %q", what, path, part)
			}
			return err
		})
		if err != nil {
			p.Fatal(err)
		}
	}
}

// streamed answers as a model, in pieces of n bytes.
func streamed(w http.ResponseWriter, text string, n int) {
	w.Header().Set("Content-Type", "text/event-stream")
	for len(text) > 0 {
		piece := text[:min(n, len(text))]
		text = text[len(piece):]
		content, _ := json.Marshal(piece)
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", content)
	}
	io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

// echo is a server that repeats its requests: as a model, cut into pieces, in
// errors of all sorts, and as a capability.
func echo(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	body, _ := io.ReadAll(r.Body)
	switch {
	case key == "":
		http.Error(w, "no key came", http.StatusTeapot)
	case strings.Contains(string(body), "as an error"):
		w.Header().Set("X-Request-Id", key)
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, strings.Repeat("x", 290)+said(key)+strings.Repeat("y", 64<<10)+said(key))
	case strings.Contains(string(body), "as a provider error"):
		w.Header().Set("Content-Type", "text/event-stream")
		message, _ := json.Marshal(said(key))
		fmt.Fprintf(w, "data: {\"error\":{\"message\":%s,\"type\":%q,\"code\":%[2]q}}\n\n", message, key)
	case strings.Contains(string(body), "as nonsense"):
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {%s\n\n", said(key))
	case strings.HasSuffix(r.URL.Path, "/cut"):
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, strings.Repeat("x", 485)+key+said(key))
	case strings.HasSuffix(r.URL.Path, "/value"):
		json.NewEncoder(w).Encode(map[string]any{"text": said(key), key: []string{key}})
	case strings.HasSuffix(r.URL.Path, "/error"):
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": "x/y", "message": said(key), "details": map[string]string{key: key}}})
	default:
		streamed(w, "the key is "+said(key), 1+len(body)%7)
	}
}

const secretsConfig = `
{:grant #{:process :net :fs/read :fs/write}
 :providers {:p {:protocol :openai :url "URL" :key {:env "MODEL_KEY"}}}
 :capabilities
 {:m/echo {:cap/kind :llm :provider :p :model "m" :cap/intents #{:m/echo}}
  :h/value {:cap/kind :http :url "URL/value" :cap/intents #{:h/value} :headers {:Authorization {:env "SERVER_KEY"}}}
  :h/cut {:cap/kind :http :url "URL/cut" :cap/intents #{:h/cut} :headers {:Authorization {:env "SERVER_KEY"}}}
  :h/error {:cap/kind :http :url "URL/error" :cap/intents #{:h/error} :headers {:Authorization {:env "SERVER_KEY"}}}
  :c/out {:cap/kind :command :env ["COMMAND_KEY"] :cap/intents #{:c/out}
          :command ["/bin/sh" "-c" "printf '\"%s\"' \"$(printf %s \"$COMMAND_KEY\" | base64 -w0) $(printf %s \"$COMMAND_KEY\" | sed 's/\"/\\\\\\\\\"/g')\""]}
  :c/err {:cap/kind :command :env ["COMMAND_KEY"] :cap/intents #{:c/err}
          :command ["/bin/sh" "-c" "echo \"$COMMAND_KEY\" >&2; head -c 2020 /dev/zero | tr '\\0' x >&2; echo \"$COMMAND_KEY\" >&2; exit 1"]}}
 :policy {:default {:retry {:same-cap-max 1}}}}`

// secretsProject is a project whose servers and programs repeat their input.
func secretsProject(t *testing.T) *project {
	s := newServer(t, http.HandlerFunc(echo))
	p := newProject(t, map[string]string{"c.edn": strings.ReplaceAll(secretsConfig, "URL", s.URL)})
	p.env = append(p.env, "MODEL_KEY="+modelKey, "SERVER_KEY=Bearer "+serverKey, "COMMAND_KEY="+commandKey, "STONE_LOG_LEVEL=debug")
	return p
}

// attacks name an intent and a prompt. Each makes a server, program or model repeat a key.
var secretAttacks = []struct{ intent, prompt string }{
	{"m/echo", "as text"}, {"m/echo", "as an error"}, {"m/echo", "as a provider error"}, {"m/echo", "as nonsense"},
	{"h/value", ""}, {"h/cut", ""}, {"h/error", ""}, {"c/out", ""}, {"c/err", ""},
}

// A run writes no byte of a key: not to the database, traces, DAGs or either output, nor
// to the output of other commands about it or to a collector.
func TestNoKeyIsWritten(t *testing.T) {
	var mu sync.Mutex
	var sent strings.Builder
	collector := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err == nil {
			var body []byte
			body, err = io.ReadAll(z)
			mu.Lock()
			sent.Write(body)
			mu.Unlock()
		}
		if err != nil {
			t.Error(err)
		}
		io.WriteString(w, "{}")
	}))
	p := secretsProject(t)
	for i, a := range secretAttacks {
		plan := fmt.Sprintf("%d.edn", i)
		text := fmt.Sprintf(`{:nodes [{:op :call :intent :%s :input {:prompt %q} :as :a} {:op :emit :input {:slot/id :a}}]}`, a.intent, a.prompt)
		if err := os.WriteFile(filepath.Join(p.dir, plan), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		what := a.intent + " " + a.prompt
		trace := fmt.Sprintf("%d.jsonl", i)
		r := p.stone("run", "--config", "c.edn", "--trace", trace, "--dag", fmt.Sprintf("%d.dag", i), plan)
		if !strings.Contains(r.stdout+r.stderr, "[redacted]") && a.prompt != "as nonsense" {
			t.Errorf("%s: the attack did not take place: %+v", what, r)
		}
		p.searched(what, r)
		p.searched(what+", not kept", p.stone("run", "--no-db", "--all", "--config", "c.edn", "--dag", "no.dag", plan))
		for _, args := range [][]string{{"show", "last"}, {"export", "last", "--as", "json"}, {"export", "last", "--as", "dag"}, {"trace", "lifecycle", trace},
			{"trace", "payload", trace}, {"export", trace, "--as", "otlp", "--to", collector.URL}} {
			p.searched(what+", "+strings.Join(args, " "), p.stone(args...))
		}
	}
	if part := leaked(sent.String()); part != "" || sent.Len() == 0 {
		t.Errorf("%d bytes were sent to the collector, with %q", sent.Len(), part)
	}
}

// Nor in the answer to a request, and its pieces as they arrive.
func TestNoKeyIsAnswered(t *testing.T) {
	p := secretsProject(t)
	for i, a := range secretAttacks {
		for _, notation := range []string{"--json", "--edn"} {
			request := fmt.Sprintf(`{:proto 1 :trace {:id "%d%s"} :task {:intent :%s} :input {:prompt %q}}`, i, notation, a.intent, a.prompt)
			if err := os.WriteFile(filepath.Join(p.dir, "r.edn"), []byte(request), 0o600); err != nil {
				t.Fatal(err)
			}
			what := "act " + a.intent + " " + a.prompt
			r := p.stone("act", "--config", "c.edn", "--stream", notation, "--trace", "act.jsonl", "r.edn")
			if !strings.Contains(r.stdout, "[redacted]") && a.prompt != "as nonsense" {
				t.Errorf("%s: the attack did not take place: %+v", what, r)
			}
			p.searched(what, r)
			// The pieces together contain no key either.
			var all strings.Builder
			for line := range strings.Lines(r.stdout) {
				var piece struct{ Text string }
				if json.Unmarshal([]byte(line), &piece) == nil {
					all.WriteString(piece.Text)
				}
			}
			if part := leaked(all.String()); part != "" {
				t.Errorf("%s: the pieces have %q: %s", what, part, all.String())
			}
		}
	}
}

// The replacement of a secret does not help to guess it.
func TestNoDigestOfASecret(t *testing.T) {
	p := newProject(t, map[string]string{
		"c.edn": `{:grant #{:process} :capabilities {:c/c {:cap/kind :command :env ["DB_PASSWORD"] :cap/intents #{:c/c} :command ["/bin/sh" "-c" "echo \"\\\"$DB_PASSWORD\\\"\""]}}}`,
		"p.edn": `{:nodes [{:op :call :intent :c/c :as :a} {:op :emit :input {:slot/id :a}}]}`,
	})
	var first string
	for _, guess := range []string{"password1", "sunshine2"} {
		env := p.env
		p.env = append(p.env[:len(p.env):len(p.env)], "DB_PASSWORD="+guess)
		r := p.stone("run", "--no-db", "-q", "--config", "c.edn", "p.edn")
		if p.env = env; r.code != 0 || strings.Contains(r.stdout, guess) {
			t.Fatalf("%+v", r)
		}
		if first == "" {
			first = r.stdout
		} else if r.stdout != first {
			t.Errorf("%q replaces one secret, %q another one: they can be told apart", first, r.stdout)
		}
	}
}

// Files with prompts are for their owner.
func TestFilesAreForTheirOwner(t *testing.T) {
	p := newProject(t, map[string]string{"p.edn": `{:nodes [{:op :emit :input {:a 1}}]}`})
	if r := p.stone("run", "--trace", "t.jsonl", "--dag", "d.dag", "p.edn"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	for _, name := range []string{".stone/stone.db", "t.jsonl", "d.dag"} {
		info, err := os.Stat(filepath.Join(p.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has the mode %o", name, mode)
		}
	}
}

// A checkout whose settings name a server of an attacker gets no key of the user.
func TestSettingsGetNoKey(t *testing.T) {
	for _, provider := range []string{"openai", "anthropic", "gemini"} {
		for _, file := range []string{"settings.json", "stone.json"} {
			var header http.Header
			s := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { header = r.Header.Clone() }))
			p := newProject(t, map[string]string{".stone/" + file: fmt.Sprintf(`{"provider":%q,"url":%q,"model":"m"}`, provider, s.URL)})
			t.Setenv("OPENAI_API_KEY", modelKey)
			t.Setenv("ANTHROPIC_API_KEY", modelKey)
			t.Setenv("GEMINI_API_KEY", modelKey)
			t.Chdir(p.dir)
			t.Setenv("STONE_TRUST", "1") // also when its user trusts it
			_, err := llm.Collect(t.Context(), cli.DefaultModel(), &llm.Request{Messages: []llm.Message{llm.User("hi")}})
			var sent bytes.Buffer
			header.Write(&sent)
			if s.requests.Load() == 0 || strings.Contains(sent.String(), modelKey) {
				t.Errorf("%s, %s: %d requests, with %s (%v)", provider, file, s.requests.Load(), &sent, err)
			}
			// The user's own choice of the server is one of the key.
			t.Setenv("STONE_URL", s.URL)
			llm.Collect(t.Context(), cli.DefaultModel(), &llm.Request{Messages: []llm.Message{llm.User("hi")}})
			if sent.Reset(); header.Write(&sent) != nil || !strings.Contains(sent.String(), modelKey) {
				t.Errorf("%s: STONE_URL was sent %s", provider, &sent)
			}
			t.Setenv("STONE_URL", "")
			// So is a key beside the server, which gets that one alone.
			t.Setenv("MY_KEY", serverKey)
			settings := fmt.Sprintf(`{"provider":%q,"url":%q,"model":"m","key":{"env":"MY_KEY"}}`, provider, s.URL)
			if err := os.WriteFile(filepath.Join(p.dir, ".stone", file), []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}
			llm.Collect(t.Context(), cli.DefaultModel(), &llm.Request{Messages: []llm.Message{llm.User("hi")}})
			if sent.Reset(); header.Write(&sent) != nil || !strings.Contains(sent.String(), serverKey) || strings.Contains(sent.String(), modelKey) {
				t.Errorf("%s, %s: with a key beside the URL the server was sent %s", provider, file, &sent)
			}
		}
	}
}

// escapes steer a terminal: the clipboard, the title, the screen, eight-bit controls.
const escapes = "\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07\x1b[2J\u009b31m\u202eevil\u200f\u061c\rover\b\x1b"

// The text of a model reaches a terminal without escapes, and a pipe unchanged.
func TestTerminalIsNotSteered(t *testing.T) {
	need.Program(t, "script") // of util-linux: a terminal
	s := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "as an error") {
			http.Error(w, escapes, http.StatusBadRequest)
			return
		}
		streamed(w, "said "+escapes+" so", 5)
	}))
	p := newProject(t, map[string]string{
		"c.edn": fmt.Sprintf(`{:grant #{:net} :providers {:p {:protocol :openai :url %q}} :capabilities {:m/m {:cap/kind :llm :provider :p :model "m" :cap/intents #{:m/m}}}}`, s.URL),
		"p.edn": `{:nodes [{:op :call :intent :m/m :input {:prompt "hi"} :as :a} {:op :emit :input {:slot/id :a}}]}`,
		"e.edn": `{:nodes [{:op :call :intent :m/m :input {:prompt "as an error"} :as :a} {:op :emit :input {:slot/id :a}}]}`,
		"r.edn": `{:proto 1 :trace {:id "t"} :task {:intent :m/m} :input {:prompt "hi"}}`,
	})
	file, err := command()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"run -q --config c.edn p.edn", "run -q --all --config c.edn p.edn", "run -q --config c.edn e.edn", "run -q --json --config c.edn p.edn",
		"act --stream --edn --config c.edn r.edn", "act --stream --json --config c.edn r.edn", "show last", "export last --as json", "export last --as dag",
		"model call --model m --url " + s.URL + " hi", "model call --raw --model m --url " + s.URL + " hi",
	} {
		cmd := exec.CommandContext(t.Context(), "script", "-qec", file+" "+line, "/dev/null")
		cmd.Dir, cmd.Env = p.dir, append(p.env, "TERM=xterm", "NO_COLOR=1", "SHELL=/bin/sh")
		shown, _ := cmd.CombinedOutput() // some of them fail, as they should
		text := strings.ReplaceAll(strings.ReplaceAll(string(shown), "\r\n", "\n"), "\r\x1b[K", "")
		for _, bad := range []string{"\x1b]52", "\x1b]0;", "\x1b[2J", "\u009b", "\u202e", "\u200f", "\u061c", "\rover", "\b", "\x07"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s: the terminal was sent %q: %q", line, bad, text)
			}
		}
		if !strings.Contains(text, "[2J") && !strings.Contains(line, "show") && !strings.Contains(line, "--as json") {
			t.Errorf("%s: the attack did not take place: %q", line, text)
		}
	}
	if r := p.stone("run", "-q", "--no-db", "--config", "c.edn", "p.edn"); !strings.Contains(r.stdout, escapes) && !strings.Contains(r.stdout, `\u001b]52`) {
		t.Errorf("a pipe got %q", r.stdout)
	}
	if r := p.stone("model", "call", "--raw", "--model", "m", "--url", s.URL, "hi"); !strings.Contains(r.stdout, `]52`) {
		t.Errorf("a pipe got %q", r.stdout)
	}
}

// Nor do the examples write one, when every server that they ask repeats the key.
func TestNoKeyOfExamples(t *testing.T) {
	s := newServer(t, http.HandlerFunc(echo))
	args := map[string][]string{"cascade": {"--", "--data", "responses.jsonl"}, "audit": {"--", "--dir", "module"}}
	cache, err := os.UserCacheDir() // of the go command, which fix runs
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", filepath.Join(cache, "go-build"))
	for name, pipeline := range map[string]any{"audit": audit.Pipeline, "cascade": cascade.Pipeline, "fix": fix.Pipeline} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, map[string]string{"module/go.mod": "module m\n\ngo 1.26\n", "module/m.go": "package m\n", "responses.jsonl": `{"id": "q", "question": "1 and 3?", "responses": {"mixtral-8x7b-instruct-v0.1": ` +
				`{"text": "#### 4", "correct": true}, "gpt-4-1106-preview": {"text": "#### 4", "correct": true}}}` + "\n"})
			for _, v := range append(p.env, "OPENAI_API_KEY="+modelKey, "ANTHROPIC_API_KEY="+serverKey, "OPENAI_BASE_URL="+s.URL, "ANTHROPIC_BASE_URL="+s.URL, "STONE_LOG_LEVEL=debug") {
				key, value, _ := strings.Cut(v, "=")
				t.Setenv(key, value)
			}
			t.Chdir(p.dir)
			var stdout, stderr bytes.Buffer
			code := cli.Run(t.Context(), cli.Config{Pipeline: pipeline, Name: name, Args: append([]string{"run", "--max-roundtrips", "3", "--trace", "t.jsonl", "--dag", "d.dag"}, args[name]...),
				Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr})
			t.Logf("exit code %d", code)
			p.searched(name, result{stdout.String(), stderr.String(), code})
			if !p.touched("t.jsonl") || !p.touched(".stone/stone.db") {
				t.Errorf("%s did not run: %s", name, &stderr)
			}
		})
	}
}

// Nor in the events, the database and the errors of a program that uses the library: the
// model says its key in pieces of three bytes, as arguments of a tool, the tool repeats
// it, and a step panics with it.
func TestNoKeyOfAgents(t *testing.T) {
	turn := 0
	s := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if turn++; turn > 1 {
			streamed(w, said(key), 3)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		input, _ := json.Marshal(map[string]string{"text": said(key)})
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"repeat","arguments":""}}]}}]}`+"\n\n")
		for len(input) > 0 {
			n := min(3, len(input))
			piece, _ := json.Marshal(string(input[:n]))
			fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":%s}}]}}]}`+"\n\n", piece)
			input = input[n:]
		}
		io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	type said struct {
		Text string `json:"text"`
	}
	repeat := tool.Func("repeat", "Repeats a text.", func(_ context.Context, in said) (string, error) { return "again: " + in.Text, nil })
	p := stone.Seq("all",
		agent.New("agent", dag.NewType[agent.Text]("text"), openai.New(openai.Config{Model: "m", URL: s.URL, Key: modelKey}), agent.Config{
			User: agent.Say("Say it."), Use: []agent.Middleware{repeat}}),
		stone.Func0("panics", dag.NewType[string]("last"), func(context.Context) (string, error) { panic("with the key " + modelKey) }),
	)
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint("kept ", kept), func(t *testing.T) {
			turn = 0
			project := newProject(t, nil)
			file, err := event.Append(filepath.Join(project.dir, "t.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			var r eventtest.Recorder
			cfg := stone.Config{Watch: event.All(&r, event.NewWriter(file, slog.LevelDebug)), Recorder: journal.Redact()}
			if kept {
				db, err := sqlite.Open(filepath.Join(project.dir, "runs.db"), sqlite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				cfg.Recorder = journal.Keep(db, journal.Options{})
			}
			got, err := stone.Run(t.Context(), p, cfg)
			if err == nil || !strings.Contains(err.Error(), "[redacted]") {
				t.Errorf("%v, want the panic without the key", err)
			}
			var d bytes.Buffer
			if err := errors.Join(dag.Write(&d, got.DAG), file.Close()); err != nil {
				t.Fatal(err)
			}
			pieces := ""
			for _, e := range r.Events() {
				if delta, ok := e.Data.(event.Delta); ok {
					pieces += delta.Text
				}
				if part := leaked(fmt.Sprintf("%+v", e)); part != "" {
					t.Errorf("the event %T has %q", e.Data, part)
				}
			}
			if part := leaked(pieces); part != "" || !strings.Contains(pieces, "[redacted]") {
				t.Errorf("the deltas have %q: %s", part, pieces)
			}
			project.searched("agent", result{d.String(), fmt.Sprint(err), 0})
		})
	}
}
