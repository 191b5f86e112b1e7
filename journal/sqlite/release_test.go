package sqlite

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
)

var update = flag.Bool("update", false, "write ../../testdata/0.1.0/resumed.db, which every version must resume")

// did notes each piece of work that is paid, and holds those up that a process has not finished when it dies.
type did struct {
	mu   sync.Mutex
	work []string
	held func(work string) // may wait
}

func (d *did) note(work string) {
	d.mu.Lock()
	d.work = append(d.work, work)
	d.mu.Unlock()
	if d.held != nil {
		d.held(work)
	}
}

var (
	released = struct{ first, second dag.Type[string] }{dag.NewType[string]("first"), dag.NewType[string]("second")}
	solution = dag.NewType[string]("solution")
	written  = dag.NewType[agent.Text]("written")
)

// halves fails once in the middle.
func halves(d *did, fail bool) stone.Ashlar {
	return stone.Seq("halves",
		stone.Func0("one", released.first, func(context.Context) (string, error) { d.note("one"); return "paid", nil }),
		stone.Func("two", released.first, released.second, func(_ context.Context, s string) (string, error) {
			if fail {
				return "", errors.New("the power went")
			}
			return s + " once", nil
		}))
}

// solved asks a small capability, whose answer is refused, and then a large one.
func solved(d *did) stone.Ashlar {
	said := func(id, answer string) call.Capability {
		return call.Func(call.Metadata{ID: id, Cost: call.Cost{USD: 0.01}}, func(context.Context, string) (string, error) {
			d.note(id)
			return answer, nil
		})
	}
	app := &call.Applicator{Registry: call.NewRegistry(said("small", "five"), said("large", "4")), Checks: map[string]call.Check{
		"number": func(_ context.Context, s call.Subject) error {
			if text := string(s.Out); text != `"4"` {
				return fmt.Errorf("%s is no number", text)
			}
			return nil
		},
	}}
	return call.New("solve", solution, call.Spec{
		Applicator: app, Intent: "math/solve", Input: dag.Derive(dag.Nothing, func(struct{}) any { return "2 + 2" }),
		Dispatch: call.Dispatch{Candidates: []string{"small", "large"}}, Done: call.Done{Must: []string{"number"}},
	})
}

// writer is an agent with two tools, which its model calls one after the other.
func writer(d *did) stone.Ashlar {
	turns := []script.Answer{script.Call("read", `{"name":"a"}`), script.Call("write", `{"name":"b"}`), script.Text("Written.")}
	model := script.Func(func(_ int, req *llm.Request) script.Answer {
		turn := 0
		for _, m := range req.Messages {
			if m.Role == llm.RoleAssistant {
				turn++
			}
		}
		d.note(fmt.Sprint("turn ", turn))
		return turns[turn]
	})
	type named struct {
		Name string `json:"name"`
	}
	use := func(name string) agent.Middleware {
		return tool.Func(name, "Does it.", func(_ context.Context, n named) (string, error) {
			d.note(name)
			return name + " " + n.Name, nil
		})
	}
	return agent.New("write", written, model, agent.Config{System: agent.Say("You write."), User: agent.Say("Write b."), Use: []agent.Middleware{use("read"), use("write")}})
}

// releases are the runs of the file, what was done before its process died, and what the run that continues does.
var releases = []struct {
	run         string
	pipeline    func(d *did, fail bool) stone.Ashlar
	stops       string // the work in which the process dies
	rest        string
	node, holds string
}{
	{"run", halves, "", "", "3b11b36f1d30", `"paid once"`},
	{"call", func(d *did, _ bool) stone.Ashlar { return solved(d) }, "large", "large", "bf9926e9e2ea", `"4"`},
	{"agent", func(d *did, _ bool) stone.Ashlar { return writer(d) }, "write", "write, turn 2", "ab8f9793a5c3", `"Written."`},
}

// Runs of an earlier release continue: one that failed, a call between two candidates, and an agent within a tool. What has
// a result is not done again, and ids stay the same.
func TestResumeOfReleases(t *testing.T) {
	if *update {
		writeRelease(t, "../../testdata/0.1.0/resumed.db")
	}
	files, err := filepath.Glob("../../testdata/[0-9]*/resumed.db")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v: want a file for each release", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(memdir.New(t), "stone.db")
		writeFile(t, file, string(text))
		db := open(t, file, Options{})
		for _, r := range releases {
			if info, err := db.Find(t.Context(), r.run); err != nil || r.stops != "" && info.State == journal.Done {
				t.Fatalf("%s: run %s is %s, %v: want a half of it", name, r.run, info.State, err)
			}
			d := new(did)
			result, err := stone.Run(t.Context(), r.pipeline(d, false), stone.Config{RunID: r.run, Recorder: journal.Keep(db, journal.Options{})})
			if got := strings.Join(d.work, ", "); err != nil || got != r.rest {
				t.Errorf("%s: run %s does %q, %v; want %q", name, r.run, got, err, r.rest)
				continue
			}
			if content := string(result.Node.Content()); !strings.Contains(content, r.holds) || !strings.HasPrefix(result.Node.ID().String(), r.node) {
				t.Errorf("%s: run %s has node %s %s, want %s %s", name, r.run, result.Node.ID(), content, r.node, r.holds)
			}
		}
	}
}

// writeRelease copies the file when each run has stopped where it should: as a process that dies then leaves it.
func writeRelease(t *testing.T, file string) {
	t.Helper()
	db := open(t, filepath.Join(t.TempDir(), "stone.db"), Options{Lease: 100 * time.Millisecond})
	copied := make(chan struct{})
	stopped := make(chan string)
	var runs sync.WaitGroup
	for _, r := range releases {
		d := &did{held: func(work string) {
			if work == r.stops {
				stopped <- r.run
				<-copied
			}
		}}
		runs.Go(func() {
			_, err := stone.Run(t.Context(), r.pipeline(d, r.stops == ""), stone.Config{RunID: r.run, Recorder: journal.Keep(db, journal.Options{})})
			if (err != nil) != (r.stops == "") {
				t.Errorf("%s: %v", r.run, err)
			}
			if r.stops == "" {
				stopped <- r.run
			}
		})
	}
	for range releases {
		<-stopped
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := db.Backup(t.Context(), file); err != nil {
		t.Error(err)
	}
	close(copied)
	runs.Wait()
}

// The page of formats has the present version.
func TestVersionOfPage(t *testing.T) {
	want := fmt.Sprintf("`application_id` is 0x%x | %d |", application, version)
	if text, err := os.ReadFile("../../docs/reference/formats.md"); err != nil || !strings.Contains(string(text), want) {
		t.Errorf("docs/reference/formats.md does not say %q, %v", want, err)
	}
}
