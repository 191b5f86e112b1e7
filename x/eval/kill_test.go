package eval_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/x/eval"
)

// A workload makes the pipeline that a victim runs. Its steps get their answers from ask.
type workload func(t *testing.T, data eval.Data, ask func(path, text string) (string, error)) (stone.Ashlar, error)

var workloads = map[string]workload{
	"evaluation": func(t *testing.T, data eval.Data, ask func(path, text string) (string, error)) (stone.Ashlar, error) {
		p := stone.Func("reply", asked, reply, func(ctx context.Context, q question) (string, error) { return ask(stone.In(ctx).Path(), q.Text) })
		return eval.Pipeline(t.Context(), eval.Config{Pipeline: p, Data: data, Scorers: scorers(t, "exact"), Trials: 3}, stone.Config{})
	},
	"tuning": func(t *testing.T, data eval.Data, ask func(path, text string) (string, error)) (stone.Ashlar, error) {
		var caps []call.Capability
		for i, id := range []string{"a", "b", "c"} {
			caps = append(caps, call.Func(call.Metadata{ID: id, Intents: []string{"say"}, Cost: call.Cost{USD: float64(1 + i)}}, func(ctx context.Context, in any) (any, error) {
				text, err := ask(stone.In(ctx).Path(), in.(map[string]any)["text"].(string))
				return text + strings.Repeat("!", (len(text)+i)%2), err
			}))
		}
		v := rival{app: &call.Applicator{Registry: call.NewRegistry(caps...), Checks: map[string]call.Check{"calm": lacks("!"), "sure": lacks("?")}}}
		return v.tuning(t, data, v.spec(0.5, "c", "b", "a"), 2.5).Pipeline(t.Context(), stone.Config{})
	},
	// Each lesson adds a digit to the prompt, and questions that end with one of its digits are answered right.
	"improvement": func(t *testing.T, data eval.Data, ask func(path, text string) (string, error)) (stone.Ashlar, error) {
		p := stone.Func2("reply", asked, agent.Adjustable("digits", ""), reply, func(ctx context.Context, q question, digits string) (string, error) {
			text, err := ask(stone.In(ctx).Path(), q.Text)
			if !strings.Contains(digits, text[len(text)-1:]) {
				text = "unknown"
			}
			return text, err
		}, stone.Detail{Prompts: func() map[string]string { return map[string]string{"digits": ""} }})
		teacher := call.Func(call.Metadata{ID: "teacher"}, func(ctx context.Context, in struct{ Prompt string }) (any, error) {
			lines := strings.Split(in.Prompt, "\n")
			at := slices.Index(lines, "The prompt:")
			_, err := ask(stone.In(ctx).Path(), "lesson")
			return map[string]string{"why": "digits are missing", "prompt": lines[at+2] + strings.TrimLeft("0123456789", lines[at+2])[:1]}, err
		})
		return eval.Improving{Program: p, Data: data, Scorer: scorers(t, "exact")[0], Applicator: &call.Applicator{Registry: call.NewRegistry(teacher)}, By: "teacher", Rounds: 5, Shown: 20}.
			Pipeline(t.Context(), stone.Config{})
	},
}

// victim runs a workload in a directory. It logs the path of every question that is asked, and writes
// the last node at the end.
func victim(t *testing.T, dir, name string, cases int) {
	log, err := os.OpenFile(filepath.Join(dir, "asked"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path, text string) (string, error) {
		if strings.HasSuffix(text, "3") {
			text = "?"
		}
		_, err := fmt.Fprintln(log, path)
		return strings.ToUpper(text), err
	}
	var texts []string
	for i := range cases {
		texts = append(texts, fmt.Sprint("question ", i))
	}
	db, err := sqlite.Open(filepath.Join(dir, "stone.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	a, err := workloads[name](t, rows(texts...), ask)
	if err != nil {
		t.Fatal(err)
	}
	ctx := budget.With(t.Context(), budget.New(budget.Limits{})) // as Run and Tuning.Run do
	r, err := stone.Run(ctx, a, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{}), Frontend: person("accept")})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report"), []byte(r.Node.JSON()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestKill kills an evaluation, a tuning and an improvement at random moments. They ask no question again whose answer
// is recorded, and their last nodes equal uninterrupted runs' last nodes. STONE_KILLS=1 runs 1,000 cases with 100 kills.
func TestKill(t *testing.T) {
	cases, kills := 60, 3
	if os.Getenv("STONE_KILLS") != "" {
		cases, kills = 1000, 100
	}
	if dir := os.Getenv("STONE_VICTIM"); dir != "" {
		victim(t, dir, os.Getenv("STONE_WORKLOAD"), cases)
		return
	}
	need.Time(t)
	for name := range workloads {
		t.Run(name, func(t *testing.T) { kill(t, name, cases, kills) })
	}
}

// runVictim runs a workload in a process. It kills the process once it has asked the given number of
// questions, and reports whether the workload ended before.
func runVictim(t *testing.T, dir, name string, questions int) (ended bool) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), "STONE_VICTIM="+dir, "STONE_WORKLOAD="+name)
	out := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for ctx.Err() == nil {
			if log, _ := os.ReadFile(filepath.Join(dir, "asked")); bytes.Count(log, []byte("\n")) >= questions { // there is none at first
				_ = cmd.Process.Kill() // or it has ended
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	err := cmd.Wait()
	cancel()
	<-watched
	if err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatalf("%v: %s", err, out)
	}
	return err == nil
}

// kill repeatedly kills a workload.
func kill(t *testing.T, name string, cases, kills int) {
	whole, killed := t.TempDir(), t.TempDir()
	if !runVictim(t, whole, name, math.MaxInt) {
		t.Fatal("it did not end")
	}
	log, err := os.ReadFile(filepath.Join(whole, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	questions := bytes.Count(log, []byte("\n"))
	if name != "improvement" && questions != 3*cases || questions < 3*cases {
		t.Errorf("%d questions of %d cases", questions, cases)
	}
	recorded, all, ended := map[string]bool{}, map[string]bool{}, false
	for n := 0; !ended; n++ {
		if err := os.RemoveAll(filepath.Join(killed, "asked")); err != nil {
			t.Fatal(err)
		}
		after := math.MaxInt
		if n < kills {
			after = 1 + rand.IntN(2*questions/kills)
		}
		if ended = runVictim(t, killed, name, after); ended {
			t.Logf("ended after %d kills, with %d of %d questions asked before, and %d steps recorded", n, len(all), questions, len(recorded))
			if len(all) == 0 {
				t.Error("no kill came after a question")
			}
		}
		data, err := os.ReadFile(filepath.Join(killed, "asked"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for path := range strings.Lines(string(data)) {
			if path = strings.TrimSpace(path); recorded[path] {
				t.Errorf("%s was recorded and is asked again", path)
			}
			all[path] = true
		}
		recorded = recordedSteps(t, filepath.Join(killed, "stone.db"))
	}
	for path := range all {
		if !recorded[path] {
			t.Errorf("%s is not recorded", path)
		}
	}
	if len(all) != questions {
		t.Errorf("%d recorded answers, want %d", len(all), questions)
	}
	var reports [2]string
	for i, dir := range []string{whole, killed} {
		data, err := os.ReadFile(filepath.Join(dir, "report"))
		if err != nil {
			t.Fatal(err)
		}
		reports[i] = string(data)
	}
	if reports[0] != reports[1] {
		t.Errorf("the reports differ:\n%s\n%s", reports[0], reports[1])
	}
}

func recordedSteps(t *testing.T, file string) map[string]bool {
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	steps, err := db.Steps(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for _, s := range steps {
		if s.Recorded {
			paths[s.Path] = true
		}
	}
	return paths
}
