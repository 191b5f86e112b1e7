package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
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
	if err := os.WriteFile(path, []byte(`{"data":{"event":"failure"}}`), 0o600); err != nil {
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
		fmt.Fprintf(&in, `{"data":{"event":"lane-end","timestamp":%d,"lane":%d}}`+"\n", 1760000000000+at, at)
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
		if want := fmt.Sprintf("lane=%d\n", i); !strings.HasSuffix(line, want) {
			t.Fatalf("line %d is %q, want ...%q", i+1, line, want)
		}
		i++
	}
	if i != n {
		t.Errorf("%d lines for %d events", i, n)
	}
}

func TestFormatLifecycleLine(t *testing.T) {
	const at = `"timestamp":1760000000999.9,`
	tests := []struct{ data, want string }{
		{at + `"event":"ashlar-start","ashlar-name":"fix"`, `10:53:20 ashlar-start        fix`},
		{at + `"event":"api-call","ashlar-name":"fix","turn-number":5,"messages":[1,2,3]`, `10:53:20 api-call            fix           turn=5 msgs=3`},
		{at + `"event":"api-call","ashlar-name":"fix","turn-number":0,"message-count":19,"model":"m"`, `10:53:20 api-call            fix           turn=0 msgs=19 model=m`},
		{at + `"event":"api-response","ashlar-name":"fix","turn-number":1,"usage":{"input_tokens":12,"output-tokens":3},"stop-reason":"end_turn"`,
			`10:53:20 api-response        fix           turn=1 in=12 out=3 stop=end_turn`},
		{at + `"event":"tool-dispatch","agent-ashlar-name":"fix","tool-name":"read_file"`, `10:53:20 tool-dispatch       fix           tool=read_file`},
		{at + `"event":"tool-dispatch","tool-name":"read_file"`, `10:53:20 tool-dispatch       read_file`},
		{at + `"event":"failure","kind":"max-turns","reason":"12 turns\nwithout \"done\""`, `10:53:20 failure             -             kind=max-turns reason="12 turns\nwithout \"done\""`},
		{at + `"event":"ashlar-end","ashlar-name":"a","ms":1234.56789`, `10:53:20 ashlar-end          a             ms=1234.6`},
		{at + `"event":"lane-end","lane":0,"ms":90000000`, `10:53:20 lane-end            -             lane=0 ms=90000000`},
		{at + `"event":"e\nvil\u001b[31m","ashlar-name":"a\rb"`, `10:53:20 e\nvil\x1b[31m      a\rb`},
		{at + `"event":"step-replayed","step":"","address":"review/loop[2]"`, `10:53:20 step-replayed       -             step=review/loop[2]`},
		{`"event":"run-start"`, `--:--:-- run-start           -`},
		{`"event":"run-start","timestamp":1e300`, `--:--:-- run-start           -`},
		{``, `--:--:-- -                   -`},
	}
	for _, test := range tests {
		var e Event
		dec := json.NewDecoder(strings.NewReader(`{` + test.data + `}`))
		dec.UseNumber()
		if err := dec.Decode(&e.Data); err != nil {
			t.Fatal(err)
		}
		if got := FormatLifecycleLine(e); got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.data, got, test.want)
		}
	}
}

// Whatever an event contains, it must stay on its line and not control the terminal.
func FuzzFormatLifecycleLine(f *testing.F) {
	f.Add("failure", "fix", "a\nb")
	f.Add("\u2028", "\x1b]0;x\a", "\xff\u202e")
	f.Fuzz(func(t *testing.T, typ, name, reason string) {
		got := FormatLifecycleLine(Event{Data: map[string]any{"event": typ, "ashlar-name": name, "reason": reason}})
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
		if got := cut(test.s, test.n); got != test.want {
			t.Errorf("cut(%q, %d) = %q, want %q", test.s, test.n, got, test.want)
		}
	}
	long := strings.Repeat("word \n\t", 1000)
	if got := preview(long, 12); got != "word word wo…" {
		t.Errorf("preview = %q", got)
	}
}
