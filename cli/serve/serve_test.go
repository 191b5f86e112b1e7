package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli"
	_ "github.com/stonelayer/stone/cli/serve"
	"github.com/stonelayer/stone/dag"
)

var (
	name     = dag.NewType[string]("name")
	greeting = dag.NewType[string]("greeting")
)

func greet() stone.Ashlar {
	return stone.Func("greet", name, greeting, func(_ context.Context, n string) (string, error) { return "Hello, " + n, nil })
}

// command runs the command and returns its exit code and what it printed.
func command(ctx context.Context, stderr io.Writer, args ...string) (int, string) {
	var out bytes.Buffer
	code := cli.Run(ctx, cli.Config{Pipeline: greet(), Name: "greet", Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: stderr})
	return code, out.String()
}

// server starts the command serve and returns its address, and what ends it.
func server(t *testing.T, args ...string) (url string, end func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	said, stderr := io.Pipe()
	code := make(chan int, 1)
	go func() {
		c, _ := command(ctx, stderr, append([]string{"serve", "--address", "127.0.0.1:0"}, args...)...)
		stderr.Close()
		code <- c
	}()
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "http://"); ok {
			at, _, _ = strings.Cut(at, " ")
			url = "http://" + at
			break
		}
		t.Log(lines.Text())
	}
	go io.Copy(io.Discard, said)
	if url == "" {
		t.Fatalf("the server did not start: exit code %d", <-code)
	}
	return url, func() int { cancel(); return <-code }
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
	url, end := server(t, "--db", db, "--tokens", tokens)
	if status, text := request(t, "PUT", url+"/v1/runs/a", `{"pipeline":"greet","input":"Ada"}`, ""); status != 201 {
		t.Errorf("%d %s", status, text)
	}
	if status, text := request(t, "GET", url+"/v1/runs/a/result?wait=30s", "", ""); status != 200 || !strings.Contains(text, `"Hello, Ada"`) {
		t.Errorf("%d %s", status, text)
	}
	if code := end(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	// The next server has the runs of the first, and asks for tokens as soon as there are any.
	code, token := command(t.Context(), io.Discard, "token", "create", "ci", "--role", "read", "--tokens", tokens)
	if code != 0 {
		t.Fatalf("token create: %d", code)
	}
	url, end = server(t, "--db", db, "--tokens", tokens)
	token = strings.TrimSpace(token)
	for _, tt := range []struct {
		method, body, token string
		want                int
	}{
		{"GET", "", "", 401}, {"GET", "", "stone_x", 401}, {"GET", "", token, 200},
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
		code <- cli.Run(t.Context(), cli.Config{Pipeline: greet(), Name: "greet", Args: []string{"mcp", "--db", db}, Stdin: in, Stdout: out, Stderr: io.Discard})
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
	url, end := server(t, "--db", db, "--tokens", filepath.Join(t.TempDir(), "tokens.json"))
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
