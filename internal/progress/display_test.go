package progress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var word = dag.NewType[string]("word")

func step(name string, fn func(context.Context) error) stone.Ashlar {
	return stone.Func0(name, word, func(ctx context.Context) (string, error) {
		if fn == nil {
			return name, nil
		}
		return name, fn(ctx)
	})
}

func slow(name string, d time.Duration) stone.Ashlar {
	return step(name, func(context.Context) error { time.Sleep(d); return nil })
}

func count(name string) stone.Ashlar {
	return stone.Reduce(stone.Func(name, dag.All(half), item, func(_ context.Context, all []int) (int, error) { return len(all), nil }))
}

// run runs p under a display and returns the display's output.
func run(p stone.Ashlar, cfg Config) string {
	var out bytes.Buffer
	cfg.Out = &out
	d := New(p, cfg)
	_, _ = stone.Run(context.Background(), p, stone.Config{Watch: d})
	d.Close()
	return out.String()
}

func TestPlainLines(t *testing.T) {
	rounds := 0
	until := func(n int) dag.Reader[bool] {
		return stone.Until(dag.ReaderFunc(func(dag.DAG) (bool, error) { rounds++; return rounds%n == 0, nil }), func(done bool) bool { return done })
	}
	one := step("one", nil)
	join := stone.Reduce(stone.Func("join", dag.All(word), word, func(_ context.Context, all []string) (string, error) { return "", nil }))
	for _, c := range []struct {
		name string
		p    stone.Ashlar
		want string // lines; times are written as T
	}{
		{"sequence", stone.Seq("a/b", one, one), `
done    a/b/one  T
done    a/b/one  T
done    a/b  T`},
		{"loop", stone.Loop("loop", step("one", nil), until(3), 5), `
done    loop/one  T
done    loop/one  ×2; T
done    loop/one  ×3; T
done    loop  round 3; T`},
		{"lanes", stone.Seq("all", lanes(25, 10, stone.Lanes(1)), count("count")), `
failure all/work/each[0]/halve  error: item 0 is bad
failure all/work/each[10]/halve  error: item 10 is bad
failure all/work/each[20]/halve  error: item 20 is bad
done    all/work/each  25/25, 3 lost; T
done    all/count  T; 22
done    all  T`},
		{"labels", stone.Seq("all", stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]string, error) { return []string{"a.pdf", "b.pdf"}, nil }), word,
			stone.Func("read", word, item, func(_ context.Context, s string) (int, error) {
				if s == "b.pdf" {
					return 0, errors.New("no PDF")
				}
				return 1, nil
			}), stone.Lanes(1)), stone.Reduce(stone.Func("sum", dag.All(item), item, func(context.Context, []int) (int, error) { return 1, nil }))), `
failure all/each[b.pdf]/read  error: no PDF
done    all/each  2/2, 1 lost; T
done    all/sum  T; 1
done    all  T`},
		{"parallel", stone.Seq("all", stone.Parallel("both", one, step("two", nil)), join), `
done    all/both  2/2; T
done    all/join  T
done    all  T`},
		{"failure", stone.Rescue("safe", step("try", func(context.Context) error { return errors.New("no\x1b[1m\nluck") }), step("heal", nil)), `
failure safe/try  error: no�[1m; luck
failed  safe/try  T
done    safe/heal  T
done    safe  T`},
		{"slow", stone.Seq("all", slow("long", 12*time.Second), slow("short", 4*time.Second)), `
running all/long  5.0s
done    all/long  12.0s
done    all/short  4.0s
done    all  16.0s`},
		{"agent", stone.Seq("all", agentOf()), `
turn    all/write  1; read_file draft.md
turn    all/write  2; look, look
failed  all/write  look
turn    all/write  3; answers
rejects all/write/polite  rude: it says no
turn    all/write  4; answers
done    all/write  T
done    all  T`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `).ReplaceAllString(run(c.p, Config{}), "")
				got = regexp.MustCompile(`  (×\d; |\d+/\d+, \d lost; |\d/\d; |round \d; )?(<1ms|\d+ms|[0-3]\.\ds)(\n|;)`).ReplaceAllString(got, "  ${1}T$3")
				if want := strings.TrimPrefix(c.want, "\n") + "\n"; got != want {
					t.Errorf("got\n%swant\n%s", got, want)
				}
			})
		})
	}
}

// agentOf is an agent that reads, looks twice, is rejected once and then passes.
func agentOf() stone.Ashlar {
	text := dag.NewType[agent.Text]("text")
	type at struct {
		Path string `json:"path,omitempty"`
		At   int    `json:"at,omitempty"`
	}
	read := tool.Func("read_file", "Reads.", func(context.Context, at) (string, error) { return "dear", nil })
	look := tool.Func("look", "Looks.", func(_ context.Context, a at) (string, error) {
		if a.At == 0 {
			return "", errors.New("nothing there")
		}
		return "a wall", nil
	})
	two := script.Calls(llm.ToolCall{Name: "look", Input: []byte(`{"at": 1}`)}, llm.ToolCall{Name: "look", Input: []byte(`{}`)})
	return agent.New("write", text, script.New(script.Call("read_file", `{"path": "draft.md"}`), two, script.Text("no"), script.Text("yes, please")), agent.Config{
		User: agent.Say("Write."), Use: []agent.Middleware{read, look},
		Adversary: stone.Func("polite", text, word, func(_ context.Context, draft agent.Text) (string, error) {
			if draft.Text == "no" {
				return "", stone.Fail("rude", "it says no")
			}
			return "", nil
		}),
	})
}

func TestPlainLinesAreBounded(t *testing.T) {
	n := 0
	loop := stone.Loop("loop", step("one", nil), stone.Until(dag.ReaderFunc(func(dag.DAG) (bool, error) { n++; return n == 1000, nil }), func(done bool) bool { return done }), 1000)
	got := run(stone.Seq("all", loop, lanes(1000, 2), count("count")), Config{})
	if lines := strings.Count(got, "\n"); lines > 60 {
		t.Errorf("%d lines:\n%s", lines, got)
	}
	for _, want := range []string{"further visits are not listed\n", "further failures here are only counted\n", "1000/1000, 500 lost"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestLanesAreReportedFromTimeToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]int, error) { return []int{1, 2, 3, 4, 5, 6}, nil }), item,
			stone.Func("wait", item, half, func(_ context.Context, i int) (int, error) { time.Sleep(3 * time.Second); return i, nil }), stone.Lanes(1))
		got := run(stone.Seq("all", p, count("count")), Config{})
		for _, want := range []string{"lanes   all/each  3/6; 9.0s", "lanes   all/each  5/6; 15.0s"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		if n := strings.Count(got, "lanes   all/each  "); n != 2 {
			t.Errorf("%d reports, want one every 5 seconds:\n%s", n, got)
		}
	})
}

func TestPicture(t *testing.T) {
	p := stone.Seq("fix",
		slow("read", 2*time.Second),
		stone.Map("lint", dag.ReaderFunc(func(dag.DAG) ([]int, error) { return []int{0, 1, 2, 3}, nil }), item,
			stone.Func("check", item, half, func(_ context.Context, i int) (int, error) {
				time.Sleep(time.Duration(i) * time.Second)
				if i == 1 {
					return 0, errors.New("bad")
				}
				return i, nil
			})),
		count("count"),
		stone.Match("pick", stone.On(item, func(n int) bool { return n > 1 }), stone.Case(true, step("many", nil)), stone.Case(false, step("few", nil))),
	)
	synctest.Test(t, func(t *testing.T) {
		screen := &screen{columns: 60, lines: 12}
		d := New(p, Config{Out: screen, Size: screen.size})
		done, begin := make(chan error), time.Now()
		go func() {
			_, err := stone.Run(context.Background(), p, stone.Config{Watch: d})
			done <- err
		}()
		for _, moment := range []struct {
			after time.Duration
			want  string
		}{
			{time.Second, `
* fix  0/4  1.0s
  * read  1.0s
  · lint
  · count
  · pick`},
			{3500 * time.Millisecond, `
* fix  1/4  3.5s
  ✓ read  2.0s
  * lint  2/4, 1 lost  1.5s  about 3.0s left  2, 3
    * check  1 done, 2 running, 1 failed
  · count
  · pick`},
			{6 * time.Second, `
✓ fix  5.0s
  ✓ read  2.0s
  ✓ lint  4/4, 1 lost  3.0s
    ✓ check  3 done, 1 failed
  ✓ count  <1ms
  ✓ pick  <1ms
    ✓ many  <1ms
    · few`},
		} {
			time.Sleep(moment.after - time.Since(begin))
			d.Println(fmt.Sprintf("after %v", moment.after))
			got := regexp.MustCompile("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]").ReplaceAllString(screen.String(), "*")
			if !strings.HasSuffix("\n"+got, fmt.Sprintf("\nafter %v", moment.after)+moment.want) {
				t.Errorf("after %v:\n%s\nwant%s", moment.after, got, moment.want)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		d.Close()
		if strings.Count(screen.String(), "fix") != 1 {
			t.Errorf("pictures were left behind:\n%s", screen)
		}
	})
}

// A plain line names the running lanes: branches by their names, items by a field.
func TestLanesAreNamed(t *testing.T) {
	type pack struct {
		Files int    `json:"files"`
		Path  string `json:"path"`
	}
	packs := dag.NewType[pack]("pack")
	synctest.Test(t, func(t *testing.T) {
		all := []pack{{1, "a"}, {2, "b\x1b[2J"}, {3, "c"}, {4, "d"}, {6, "e"}}
		each := stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]pack, error) { return all, nil }), packs,
			stone.Func("wait", packs, half, func(_ context.Context, p pack) (int, error) {
				time.Sleep(time.Duration(p.Files) * 4 * time.Second)
				return 1, nil
			}))
		both := stone.Parallel("both", slow("quick", time.Second), slow("middling", 8*time.Second), slow("slow", 20*time.Second))
		join := stone.Reduce(stone.Func("join", dag.All(word), word, func(_ context.Context, all []string) (string, error) { return "", nil }))
		got := run(stone.Seq("all", each, count("count"), both, join), Config{})
		for _, want := range []string{
			"lanes   all/each  3/5; 12.0s; about 8.0s left; running: d, e\n", "lanes   all/both  2/3; 8.0s; running: slow\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	})
}

// What a run has spent stands with its lanes and its end, and in the first line of the picture. A replayed step was paid before.
func TestMoneyAndRate(t *testing.T) {
	p := stone.Seq("all", stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]string, error) { return nil, nil }), word, slow("wait", 0)), slow("join", 0))
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	screen := &screen{columns: 80, lines: 12}
	var out bytes.Buffer
	plain := New(p, Config{Out: &out})
	drawn := New(p, Config{Out: screen, Size: screen.size, Now: func() time.Time { return at.Add(6 * time.Second) }})
	tell := func(after time.Duration, path string, data event.Data) {
		for _, d := range []*Display{plain, drawn} {
			d.Watch(t.Context(), event.Event{Path: path, Time: at.Add(after), Data: data})
		}
	}
	tell(0, "all", event.StepStarted{Form: "seq"})
	tell(0, "all/each", event.StepStarted{Form: "map"})
	for i := range 12 {
		after, path := time.Duration(i+1)*500*time.Millisecond, fmt.Sprintf("all/each[%d]", i)
		tell(after, "all/each", event.LaneStarted{Lane: i, Lanes: 100})
		tell(after, path+"/wait", event.StepStarted{Form: "leaf"})
		tell(after, path+"/wait", event.StepDone{Form: "leaf", OK: true, Usage: budget.Usage{USD: 0.001}, Replayed: i == 0})
		tell(after, "all/each", event.LaneEnded{Lane: i, OK: true, Elapsed: time.Second})
	}
	drawn.Close()
	tell(7*time.Second, "all", event.StepDone{Form: "seq", OK: true, Elapsed: 7 * time.Second})
	plain.Close()
	for got, want := range map[string]string{screen.String(): "all  0/2  6.0s  $0.0110\n  ⠋ each  12/100  6.0s  2.0/s, about 44.0s left", out.String(): "; $0.0110\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if n := strings.Count(out.String(), "$"); n != 2 { // with the lanes, and at the end
		t.Errorf("%d sums in\n%s", n, out.String())
	}
}

func TestPictureFitsTheScreen(t *testing.T) {
	var steps []stone.Ashlar
	for i := range 40 {
		steps = append(steps, stone.Seq(fmt.Sprintf("a-part-with-a-long-name-%d", i), slow("表", time.Second), slow("two", time.Second)))
	}
	p := stone.Seq("all", steps...)
	synctest.Test(t, func(t *testing.T) {
		screen := &screen{columns: 30, lines: 10}
		d := New(p, Config{Out: screen, Size: screen.size, Color: true})
		done := make(chan error)
		go func() {
			_, err := stone.Run(context.Background(), p, stone.Config{Watch: d})
			done <- err
		}()
		d.Println("first")
		time.Sleep(40550 * time.Millisecond) // between two pictures
		if got := screen.String(); !strings.HasPrefix(got, "first\n") || !strings.Contains(got, "20/40") || strings.Count(got, "\n") > 9 {
			t.Errorf("the screen shows\n%s", got)
		}
		screen.resize(14, 5)
		time.Sleep(time.Second)
		if got := screen.String(); strings.Count(got, "\n") > 5 {
			t.Errorf("the smaller screen shows\n%s", got)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		d.Close()
	})
}

func TestPauseTakesThePictureAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		screen := &screen{columns: 60, lines: 12}
		d := New(step("one", nil), Config{Out: screen, Size: screen.size})
		time.Sleep(time.Second)
		d.Pause()
		if got := screen.String(); got != "" {
			t.Errorf("after Pause the screen shows\n%s", got)
		}
		fmt.Fprint(screen, "? name\n")
		time.Sleep(time.Second)
		d.Resume()
		d.Close()
		if got, want := screen.String(), "? name\n· one"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// A place that waits for a person has not failed, as in the list of steps and on the pages.
func TestWaitingPlace(t *testing.T) {
	reply := dag.NewType[stone.Answer]("reply")
	p := stone.Seq("all", step("one", nil), stone.Ask("may I", word, reply, func(string) string { return "Go on?" }))
	d := New(p, Config{Out: &bytes.Buffer{}})
	defer d.Close()
	if _, err := stone.Run(t.Context(), p, stone.Config{Watch: d, Recorder: journal.Keep(memdb.New(t), journal.Options{}), RunID: "r"}); !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	for i, want := range []string{"? all", "✓ one", "? may I"} {
		if got := strings.TrimSpace(d.tree.Picture(time.Now(), 10)[i].Text); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
