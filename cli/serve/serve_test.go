package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/cli/serve"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/x/acp"
	evals "github.com/stonelayer/stone/x/eval/commands"
	"github.com/stonelayer/stone/x/gateway"
	mcp "github.com/stonelayer/stone/x/mcp/server"
)

var (
	name     = dag.NewType[string]("name")
	greeting = dag.NewType[string]("greeting")
)

func greet() stone.Ashlar {
	return stone.Func("greet", name, greeting, func(_ context.Context, n string) (string, error) { return "Hello, " + n, nil })
}

var parts = []cli.Part{serve.Part, mcp.Part, acp.Part, gateway.Part, evals.Part}

// command runs the command and returns its exit code and what it printed.
func command(ctx context.Context, stderr io.Writer, args ...string) (int, string) {
	return commandOf(ctx, parts, greet(), stderr, args...)
}

func commandOf(ctx context.Context, parts []cli.Part, p stone.Ashlar, stderr io.Writer, args ...string) (int, string) {
	var out bytes.Buffer
	code := cli.Run(ctx, cli.Config{Parts: parts, Pipeline: p, Name: p.Name(), Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: stderr})
	return code, out.String()
}

// server starts the command serve and returns its address, the token that it made, and what ends it.
func server(t *testing.T, args ...string) (url, token string, end func() int) {
	t.Helper()
	return started(t, append([]string{"serve", "--address", "127.0.0.1:0"}, args...)...)
}

// started is server for any command that serves.
func started(t *testing.T, args ...string) (url, token string, end func() int) {
	t.Helper()
	return startedOf(t, greet(), args...)
}

func startedOf(t *testing.T, p stone.Ashlar, args ...string) (url, token string, end func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	said, stderr := io.Pipe()
	code := make(chan int, 1)
	go func() {
		c, _ := commandOf(ctx, parts, p, stderr, args...)
		stderr.Close()
		code <- c
	}()
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "http://"); ok {
			at, _, _ = strings.Cut(at, " ")
			at, token, _ = strings.Cut(at, "/?token=")
			url = "http://" + at
			break
		}
		t.Log(lines.Text())
	}
	go io.Copy(io.Discard, said)
	if url == "" {
		t.Fatalf("the server did not start: exit code %d", <-code)
	}
	end = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { end() }) // before its folder is removed
	return url, token, end
}

func request(t *testing.T, method, url, body, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestServe(t *testing.T) {
	dir := t.TempDir()
	db, tokens := filepath.Join(dir, "stone.db"), filepath.Join(dir, "tokens.json")
	url, first, end := server(t, "--db", db, "--tokens", tokens)
	if status, text := request(t, "PUT", url+"/v1/runs/a", `{"pipeline":"greet","input":"Ada"}`, ""); status != 401 {
		t.Errorf("without a token: %d %s", status, text)
	}
	if status, text := request(t, "PUT", url+"/v1/runs/a", `{"pipeline":"greet","input":"Ada"}`, first); status != 201 {
		t.Errorf("%d %s", status, text)
	}
	if status, text := request(t, "GET", url+"/v1/runs/a/result?wait=30s", "", first); status != 200 || !strings.Contains(text, `"Hello, Ada"`) {
		t.Errorf("%d %s", status, text)
	}
	// The token of the start ends when there are others, and with its server.
	code, token := command(t.Context(), io.Discard, "token", "create", "ci", "--role", "read", "--tokens", tokens)
	if code != 0 {
		t.Fatalf("token create: %d", code)
	}
	for status := 200; status != 401; { // the server sees the file within a second
		status, _ = request(t, "GET", url+"/v1/runs/a", "", first)
	}
	if code := end(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	// The next server has the runs of the first.
	url, made, end := server(t, "--db", db, "--tokens", tokens)
	if made != "" {
		t.Errorf("a server with tokens makes %q", made)
	}
	token = strings.TrimSpace(token)
	for _, tt := range []struct {
		method, body, token string
		want                int
	}{
		{"GET", "", "", 401}, {"GET", "", "stone_x", 401}, {"GET", "", first, 401}, {"GET", "", token, 200},
		{"PUT", `{"pipeline":"greet","input":"Ada"}`, token, 403},
	} {
		if status, text := request(t, tt.method, url+"/v1/runs/a", tt.body, tt.token); status != tt.want {
			t.Errorf("%s with %q: %d %s, want %d", tt.method, tt.token, status, text, tt.want)
		}
	}
	if code := end(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}

// A client gets tools over standard input and output, and the command ends with it.
func TestMCP(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	db := filepath.Join(t.TempDir(), "stone.db")
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(t.Context(), cli.Config{Parts: parts, Pipeline: greet(), Name: "greet", Args: []string{"mcp", "--db", db}, Stdin: in, Stdout: out, Stderr: io.Discard})
		out.Close()
	}()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "greet", Arguments: map[string]any{"input": "Ada"}})
	if err != nil || len(res.Content) != 1 || res.Content[0].(*sdk.TextContent).Text != "Hello, Ada" {
		t.Errorf("got %+v, %v", res, err)
	}
	toServer.Close()
	if got := <-code; got != 0 {
		t.Errorf("the exit code is %d", got)
	}
	// A server has the run, and the same tools.
	url, made, end := server(t, "--db", db, "--insecure", "--tokens", filepath.Join(t.TempDir(), "tokens.json"))
	if made != "" {
		t.Errorf("an open server makes the token %q", made)
	}
	if status, text := request(t, "GET", url+"/v1/runs?pipeline=greet", "", ""); status != 200 || !strings.Contains(text, `"state":"done"`) {
		t.Errorf("%d %s", status, text)
	}
	client, err = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url + "/mcp", MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := client.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 5 {
		t.Errorf("got %+v, %v", list, err)
	}
	client.Close()
	if code := end(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}

// A server without tokens, and the pages of inspect, obey nobody without the token that they print.
// Opening the printed address signs a browser in.
// ending is the standard error of a server that ends as soon as it serves.
type ending struct {
	mu     sync.Mutex
	all    bytes.Buffer
	cancel func()
}

func (e *ending) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if bytes.Contains(b, []byte("serving http://")) {
		e.cancel()
	}
	return e.all.Write(b)
}

// With --log json, each line that the server writes is an object with a time, a level and a message.
func TestJSONLog(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lines := ending{cancel: cancel}
	dir := t.TempDir()
	command(ctx, &lines, "serve", "--log", "json", "--address", "127.0.0.1:0", "--db", filepath.Join(dir, "stone.db"), "--tokens", filepath.Join(dir, "tokens.json"))
	all := ""
	for line := range strings.Lines(lines.all.String()) {
		var record struct {
			Time       time.Time
			Level, Msg string
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Time.IsZero() || record.Level == "" || record.Msg == "" {
			t.Errorf("%q: %v", line, err)
		}
		all += record.Msg
	}
	if !strings.Contains(all, "serving http://") {
		t.Errorf("got %q", all)
	}
	if code, _ := command(t.Context(), &lines, "serve", "--log", "xml"); code == 0 || !strings.Contains(lines.all.String(), `--log xml: want text, json`) {
		t.Errorf("--log xml: %d, %s", code, lines.all.String())
	}
}

func TestAddressSignsIn(t *testing.T) {
	db := filepath.Join(t.TempDir(), "stone.db")
	if code, _ := command(t.Context(), io.Discard, "run", "--id", "a", "--db", db, "--input", `"Ada"`); code != 0 {
		t.Fatalf("run: %d", code)
	}
	for _, args := range [][]string{{"serve", "--tokens", filepath.Join(t.TempDir(), "tokens.json")}, {"inspect"}, {"inspect", "--answer"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			url, token, end := started(t, append(args, "--address", "127.0.0.1:0", "--db", db)...)
			for _, path := range []string{"/", "/runs/a", "/v1/runs", "/v1/questions", "/runs/a?token=stone_x", "/?token="} {
				if status, text := request(t, "GET", url+path, "", ""); status != 401 {
					t.Errorf("%s: %d %s", path, status, text)
				}
			}
			for _, path := range []string{"/v1/runs/a/answers", "/runs/a/answers", "/v1/act", "/mcp"} {
				if status, text := request(t, "POST", url+path, `{"question":"x","response":"yes"}`, ""); status != 401 && status != 404 {
					t.Errorf("%s: %d %s", path, status, text)
				}
			}
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			browser := &http.Client{Jar: jar}
			for _, path := range []string{"/runs/a?view=graph&token=" + token, "/"} {
				resp, err := browser.Get(url + path)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != 200 || strings.Contains(resp.Request.URL.String(), "token") || strings.Contains(path, "graph") != (resp.Request.URL.RawQuery == "view=graph") {
					t.Errorf("%s: %d, at %s", path, resp.StatusCode, resp.Request.URL)
				}
			}
			// A link of another page does not sign in: it could do so as somebody else.
			req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/?token="+token, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Sec-Fetch-Site", "cross-site")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 403 || resp.Header.Get("Set-Cookie") != "" {
				t.Errorf("a link of another page: %d %v", resp.StatusCode, resp.Header)
			}
			if code := end(); code != 0 {
				t.Errorf("the exit code is %d", code)
			}
		})
	}
}
