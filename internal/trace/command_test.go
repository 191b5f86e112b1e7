package trace

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/lines"
)

var update = flag.Bool("update", false, "write what the commands print into testdata")

// All tests see one time zone, which is not UTC.
func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		writeUntilKilled(path)
	}
	time.Local = time.FixedZone("test", 2*60*60)
	os.Exit(m.Run())
}

// Each testdata/*.txtar has a trace.jsonl; every other file is named after a command line
// and contains its output, with reports on bad lines marked "! ".
func TestCommand(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives in testdata (%v)", err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var trace []byte
		for i, file := range archive.Files {
			if file.Name == "trace.jsonl" {
				trace = file.Data
				continue
			}
			t.Run(filepath.Base(path)+"/"+file.Name, func(t *testing.T) {
				got := runCommand(t, strings.Fields(file.Name), trace)
				if *update {
					archive.Files[i].Data = got
				} else if !bytes.Equal(got, file.Data) {
					t.Errorf("got:\n%s\nwant:\n%s", got, file.Data)
				}
			})
		}
		if *update {
			if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func runCommand(t *testing.T, args []string, trace []byte) []byte {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("trace.jsonl", trace, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, reports bytes.Buffer
	c := Command{Out: &out, Err: &reports}
	var err error
	switch args[0] {
	case "tally":
		err = c.RunTally("trace.jsonl")
	case "lifecycle":
		err = c.RunLifecycle("trace.jsonl")
	case "payload":
		err = c.RunPayload("trace.jsonl", payloadOptions(t, args[1:]))
	default:
		t.Fatalf("unknown command %q", args[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	for report := range strings.Lines(reports.String()) {
		out.WriteString("! " + report)
	}
	return out.Bytes()
}

func payloadOptions(t *testing.T, args []string) (opts PayloadOptions) {
	for _, arg := range args {
		switch key, value, _ := strings.Cut(arg, "="); key {
		case "ashlar":
			opts.Ashlar = value
		case "turn":
			turn, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			opts.Turn = &turn
		case "last":
			opts.Last = true
		}
	}
	return opts
}

func TestCommandErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.jsonl")
	if err := os.WriteFile(path, []byte(`{"event":"failure"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := map[string]func(Command, string) error{
		"tally":     Command.RunTally,
		"lifecycle": Command.RunLifecycle,
		"payload":   func(c Command, path string) error { return c.RunPayload(path, PayloadOptions{}) },
	}
	for name, run := range commands {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			if err := run(Command{&buf, &buf}, path+"x"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a missing file: %v", err)
			}
			if err := run(Command{&buf, &buf}, dir); err == nil {
				t.Error("a directory: no error")
			}
			if err := run(Command{failing{}, &buf}, path); !errors.Is(err, os.ErrClosed) {
				t.Errorf("a writer that fails: %v", err)
			}
		})
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestRunLifecycleOrder(t *testing.T) {
	const n, apart = 3 * reorderWindow, reorderWindow - 1
	var in bytes.Buffer
	for i := range n {
		at := i
		switch i { // two events change places, at the maximum distance
		case 1000:
			at = 1000 + apart
		case 1000 + apart:
			at = 1000
		}
		fmt.Fprintf(&in, `{"event":"failure","timestamp":%d,"data":{"kind":"k%d"}}`+"\n", 1760000000000+at, at)
	}
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, in.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (Command{Out: &out}).RunLifecycle(path); err != nil {
		t.Fatal(err)
	}
	i := 0
	for line := range strings.Lines(out.String()) {
		if want := fmt.Sprintf("kind=k%d\n", i); !strings.HasSuffix(line, want) {
			t.Fatalf("line %d is %q, want ...%q", i+1, line, want)
		}
		i++
	}
	if i != n {
		t.Errorf("%d lines for %d events", i, n)
	}
}

func TestFormatLifecycleLine(t *testing.T) {
	at := time.UnixMicro(1760000000999900)
	tests := []struct {
		e    event.Event
		want string
	}{
		{event.Event{Time: at, Name: "fix", Data: event.StepStarted{Form: "leaf"}}, `10:53:20 ashlar-start        fix`},
		{event.Event{Time: at, Name: "fix", Data: event.ModelRequest{Model: "m", MessageCount: 19}}, `10:53:20 api-call            fix           msgs=19 model=m`},
		{event.Event{Time: at, Name: "fix", Data: event.ModelResponse{Turn: 1, Usage: budget.Usage{InputTokens: 12, OutputTokens: 3}, Reply: &event.ModelReply{StopReason: "end_turn"}, Elapsed: 1234567890}},
			`10:53:20 api-response        fix           turn=1 in=12 out=3 calls=0 stop=end_turn ms=1234.6`},
		{event.Event{Time: at, Name: "fix", Data: event.ToolDone{ToolCall: event.ToolCall{Turn: 1, Tool: "read_file"}}}, `10:53:20 tool-dispatch       fix           turn=1 tool=read_file ms=0`},
		{event.Event{Time: at, Data: event.StepFailed{Kind: "max-turns", Reason: "12 turns\nwithout \"done\""}}, `10:53:20 failure             -             kind=max-turns reason="12 turns\nwithout \"done\""`},
		{event.Event{Time: at, Data: event.LaneEnded{Lanes: 2, Elapsed: 25 * time.Hour, Lost: true}}, `10:53:20 lane-end            -             lane=0 lanes=2 lost=true ms=90000000`},
		{event.Event{Time: at, Name: "a\rb", Data: event.Custom{Name: "e\nvil\x1b[31m"}}, `10:53:20 e\nvil\x1b[31m      a\rb`},
		{event.Event{Time: at, Name: "a", Data: event.PlanChecked{Findings: []string{"a", "b"}}}, `10:53:20 plan-checked        a             findings=2`},
		{event.Event{Data: event.RunStarted{}}, `--:--:-- run-start           -`},
	}
	for _, test := range tests {
		if got := FormatLifecycleLine(test.e); got != test.want {
			t.Errorf("%+v\ngot  %s\nwant %s", test.e, got, test.want)
		}
	}
}

// Whatever an event contains, it must stay on its line and not control the terminal.
func FuzzFormatLifecycleLine(f *testing.F) {
	f.Add("failure", "fix", "a\nb")
	f.Add("\u2028", "\x1b]0;x\a", "\xff\u202e")
	f.Fuzz(func(t *testing.T, typ, name, reason string) {
		got := FormatLifecycleLine(event.Event{Name: name, Data: event.Custom{Name: typ, Attrs: []slog.Attr{slog.String("reason", reason)}}})
		for _, r := range got {
			if !strconv.IsPrint(r) {
				t.Errorf("%q in %q", r, got)
			}
		}
	})
}

func TestCut(t *testing.T) {
	tests := []struct {
		s    string
		n    int
		want string
	}{
		{"", 2, ""}, {"é", 1, "é"}, {"éa", 2, "éa"}, {"éab", 2, "éa…"}, {"a", 0, "…"},
	}
	for _, test := range tests {
		if got := lines.Cut(test.s, test.n); got != test.want {
			t.Errorf("cut(%q, %d) = %q, want %q", test.s, test.n, got, test.want)
		}
	}
	long := strings.Repeat("word \n\t", 1000)
	if got := lines.Preview(long, 12); got != "word word wo…" {
		t.Errorf("preview = %q", got)
	}
}
