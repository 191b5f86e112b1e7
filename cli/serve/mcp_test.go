package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/journal/postgres"
)

// commandVar makes the test binary the command stone.
const commandVar = "STONE_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVar) == "" {
		os.Exit(m.Run())
	}
	if ledger := os.Getenv(ledgerVar); ledger != "" {
		os.Exit(cli.Run(context.Background(), cli.Config{Parts: append(parts, postgres.Part), Pipeline: counted(ledger), Name: "counted", Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}))
	}
	os.Exit(cli.Run(context.Background(), cli.Config{Parts: parts, Pipeline: paging(), Name: "page", Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}))
}

// paging is a pipeline that asks a person. With the text "wait", it waits until it is cancelled.
func paging() stone.Ashlar {
	text, draft, approval := dag.NewType[string]("text"), dag.NewType[string]("draft"), dag.NewType[stone.Answer]("approval")
	begin := stone.Func("begin", text, draft, func(_ context.Context, s string) (string, error) { return "About " + s, nil })
	write := stone.Func("write", draft, draft, func(ctx context.Context, s string) (string, error) {
		if s == "About wait" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return s, nil
	})
	ask := stone.Ask("approve", draft, approval, func(s string) string { return "Publish " + s + "?" }, stone.Choices("yes", "no"))
	publish := stone.Func2("publish", draft, approval, greeting, func(_ context.Context, s string, a stone.Answer) (string, error) {
		return a.Response + ": " + s, nil
	})
	return stone.Seq("page", begin, write, ask, publish)
}

// ended matches a list of runs with a canceled run and, before it, one that is done.
var ended = regexp.MustCompile(`(?s)page +canceled .*\n\S+ +page +done `)

// runsOf returns what "stone runs" prints for a database.
func runsOf(t *testing.T, db string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "runs", "--db", db)
	cmd.Env = append(os.Environ(), commandVar+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// The command serves the client of the Go SDK over standard input and output.
func TestMCPProcess(t *testing.T) {
	db := filepath.Join(t.TempDir(), "stone.db")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "mcp", "--db", db)
	cmd.Env = append(os.Environ(), commandVar+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	asked, steps := make(chan string, 8), make(chan string, 64)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			asked <- r.Params.Message
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "yes"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { steps <- r.Params.Message },
	})
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: cmd, TerminateDuration: 10 * time.Second}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	call := func(ctx context.Context, input string) (*sdk.CallToolResult, error) {
		params := &sdk.CallToolParams{Name: "page", Arguments: map[string]any{"input": input}}
		params.SetProgressToken("p " + input)
		return session.CallTool(ctx, params)
	}
	res, err := call(t.Context(), "slate")
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Content[0].(*sdk.TextContent).Text; got != "yes: About slate" || <-asked != "Publish About slate?" {
		t.Errorf("got %q", got)
	}
	// The client calls again with the answer, and that call reports all steps of the run.
	for _, want := range []string{"page/begin", "page/write", "page/begin", "page/write", "page/approve", "page/publish"} {
		if got := <-steps; got != want {
			t.Errorf("progress %q, want %q", got, want)
		}
	}
	node := fmt.Sprint(res.StructuredContent.(map[string]any)["node"])
	read, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: node})
	if err != nil || read.Contents[0].Text != "yes: About slate" {
		t.Errorf("%s: %v, %v", node, read, err)
	}
	// Cancelling a call cancels its run.
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-steps; cancel() }()
	if _, err := call(ctx, "wait"); err == nil {
		t.Error("the call was not cancelled")
	}
	for !ended.MatchString(runsOf(t, db)) {
		time.Sleep(10 * time.Millisecond)
	}
	if err := session.Close(); err != nil {
		t.Errorf("the command ended with %v: %s", err, stderr.String())
	}
}

// The command serves the official TypeScript clients, of both SDKs.
func TestMCPNPM(t *testing.T) {
	modules := filepath.Dir(filepath.Dir(peer.Module(t, "@modelcontextprotocol/sdk")))
	peer.Module(t, "@modelcontextprotocol/client")
	for _, client := range []string{"@modelcontextprotocol/client", "@modelcontextprotocol/sdk"} {
		peer.Held(t, client, "tools of a command")
	}
	for _, version := range []string{"1", "2"} {
		t.Run("SDK "+version, func(t *testing.T) { npm(t, modules, version) })
	}
}

func npm(t *testing.T, modules, version string) {
	program, err := os.Open("testdata/mcp.mjs")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	db := filepath.Join(t.TempDir(), "stone.db")
	command, err := json.Marshal([]string{os.Args[0], "mcp", "--db", db})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "node", "--input-type=module", "-")
	cmd.Dir, cmd.Stdin = filepath.Dir(modules), program
	cmd.Env = append(os.Environ(), commandVar+"=1", "STONE_COMMAND="+string(command), "STONE_SDK="+version)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	const want = `tools: ["page","run_answer","run_cancel","run_result","run_status"]
asked: ["Publish About slate?",["yes","no"]]
page: ["yes: About slate","done"]
progress: ["page/begin","page/write"]
node: "yes: About slate"
cancelled: true
bad: true
`
	if err != nil || string(out) != want {
		t.Errorf("%v: %s\ngot:\n%s\nwant:\n%s", err, stderr.String(), out, want)
	}
	if got := runsOf(t, db); !ended.MatchString(got) {
		t.Errorf("the journal has:\n%s\n%s", got, stderr.String())
	}
}
