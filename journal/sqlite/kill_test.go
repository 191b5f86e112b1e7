package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// The tests run this binary again as a process that can be killed. Its environment names
// the database, the log of its work, and the point at which it kills itself: "after work
// 17" is the 17th time.
const (
	jobFile  = "STONE_TEST_DB"
	jobLog   = "STONE_TEST_LOG"
	jobPoint = "STONE_TEST_POINT"
	jobUser  = "STONE_TEST_UID"  // the user of this test's processes
	jobKeep  = "STONE_TEST_KEEP" // set if the run is started and ended
)

func TestMain(m *testing.M) {
	if uid, err := strconv.Atoi(os.Getenv(jobUser)); err == nil {
		if err := setUser(uid); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if os.Getenv(jobFile) == "" {
		os.Exit(m.Run())
	}
	if err := child(os.Getenv(jobFile), os.Getenv(jobLog), os.Getenv(jobPoint)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const shortLease = 100 * time.Millisecond

func child(file, log, point string) error {
	killAt(point)
	worked, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer worked.Close()
	db, err := Open(file, Options{Lease: shortLease})
	if err != nil {
		return err
	}
	var recorder step.Recorder = db
	if os.Getenv(jobKeep) != "" {
		recorder = journal.Keep(db, journal.Options{})
	}
	result, err := stone.Run(context.Background(), pipeline(worked), stone.Config{RunID: "r", Recorder: recorder, Now: stopped})
	if err != nil {
		return err
	}
	for n := range result.DAG.Nodes() {
		fmt.Println(n.ID())
	}
	return db.Close()
}

func stopped() time.Time { return time.Unix(1_800_000_000, 0) }

// killAt makes the process kill itself at a point.
func killAt(point string) {
	cut := strings.LastIndex(point, " ")
	if cut < 0 {
		return
	}
	name := point[:cut]
	left := make(chan int, 1)
	times, _ := strconv.Atoi(point[cut+1:])
	left <- times
	reached.Call(func(at string) {
		if at != name {
			return
		}
		n := <-left - 1
		if n == 0 {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				_ = self.Kill() // SIGKILL
			}
			select {}
		}
		left <- n
	})
}

var (
	plan   = dag.NewType[[]int]("plan")
	item   = dag.NewType[int]("item")
	draft  = dag.NewType[string]("draft")
	round  = dag.NewType[int]("round")
	joined = dag.NewType[string]("joined")
)

// pipeline has a leaf with steps, a loop and a fan-out of 20 lanes. Each piece of
// work writes a line with its path.
func pipeline(worked *os.File) stone.Ashlar {
	work := func(ctx context.Context) error {
		time.Sleep(time.Millisecond)
		_, err := fmt.Fprintln(worked, stone.In(ctx).Path())
		return err
	}
	first := stone.New("first", plan, func(ctx context.Context, _ dag.DAG) ([]int, error) {
		var items []int
		for i := range 20 {
			n, err := stone.Step(ctx, fmt.Sprint("call-", i), nil, func(ctx context.Context, _ any) (int, error) { return i, work(ctx) })
			if err != nil {
				return nil, err
			}
			items = append(items, n)
		}
		return items, nil
	})
	lane := stone.Func("lane", item, draft, func(ctx context.Context, i int) (string, error) {
		return fmt.Sprint("lane ", i), work(ctx)
	})
	again := stone.New("again", round, func(ctx context.Context, d dag.DAG) (int, error) {
		before, err := dag.All(round).From(d)
		if err != nil {
			return 0, err
		}
		return len(before), work(ctx)
	}, stone.Queries(dag.Maybe(dag.All(round))))
	join := stone.Func("join", dag.All(draft), joined, func(ctx context.Context, all []string) (string, error) {
		return strings.Join(all, ", "), work(ctx)
	})
	return stone.Seq("all", first,
		stone.Loop("loop", again, stone.Until(round, func(n int) bool { return n == 4 }), 9),
		stone.Map("fan", plan, item, lane),
		stone.Reduce(join),
	)
}

// victim is a run that is killed repeatedly.
type victim struct {
	*testing.T
	file, log string
	kills     int
	recorded  map[string]int // paths of recorded steps, with their number of log lines at that time
}

func newVictim(t *testing.T) *victim {
	dir := t.TempDir()
	return &victim{T: t, file: filepath.Join(dir, "stone.db"), log: filepath.Join(dir, "log"), recorded: map[string]int{}}
}

// resume starts the process, and returns its output if it ended by itself.
func (v *victim) resume(point string, killAfter time.Duration) (ids string, ended bool) {
	v.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobFile+"="+v.file, jobLog+"="+v.log, jobPoint+"="+point)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		v.Fatal(err)
	}
	if killAfter > 0 {
		timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() }) // it may have ended
		defer timer.Stop()
	}
	err := cmd.Wait()
	if err == nil {
		return out.String(), true
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		v.Fatalf("the run ended with %v: %s", err, errs.String())
	}
	v.kills++
	return "", false
}

// lines counts the log lines of each step.
func (v *victim) lines() map[string]int {
	v.Helper()
	text, err := os.ReadFile(v.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		v.Fatal(err)
	}
	lines := map[string]int{}
	for line := range strings.Lines(string(text)) {
		lines[strings.TrimSpace(line)]++
	}
	return lines
}

// check compares the file with the log: no recorded step was repeated, and no work was
// done without an intent.
func (v *victim) check() {
	v.Helper()
	db := open(v.T, v.file, Options{Lease: shortLease})
	defer db.Close()
	steps, err := db.Steps(v.Context(), "r")
	if err != nil {
		v.Fatal(err)
	}
	lines := v.lines()
	for path, n := range v.recorded {
		if lines[path] != n {
			v.Errorf("%s was worked %d times, recorded after %d", path, lines[path], n)
		}
	}
	for _, s := range steps {
		if s.Kind == "decision" || strings.HasSuffix(s.Path, "first") {
			continue // they write no line
		}
		if s.Recorded {
			v.recorded[s.Path] = lines[s.Path]
		}
		if n := lines[s.Path]; n > s.Attempts || s.Recorded && n == 0 {
			v.Errorf("%s was worked %d times, the file knows of %d, recorded: %t", s.Path, n, s.Attempts, s.Recorded)
		}
	}
}

// finish resumes the run to its end, which must be the same as without kills.
func (v *victim) finish(want string) {
	v.Helper()
	ids, ended := v.resume("", 0)
	v.check()
	if !ended || ids != want {
		v.Errorf("after %d kills the run has the nodes\n%swant\n%s", v.kills, ids, want)
	}
	if len(v.recorded) != 46 {
		v.Errorf("%d steps are recorded, want 46", len(v.recorded))
	}
	for path, n := range v.recorded {
		if n > 1+v.kills {
			v.Errorf("%s was worked %d times with %d kills", path, n, v.kills)
		}
	}
}

func undisturbed(t *testing.T) string {
	t.Helper()
	ids, ended := newVictim(t).resume("", 0)
	if !ended {
		t.Fatal("a run without kills did not end")
	}
	return ids
}

func TestKillAtPoints(t *testing.T) {
	want := undisturbed(t)
	for _, point := range []string{"before intent", "after intent", "after work", "before commit", "after commit", "after acknowledge"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			for _, times := range []int{1, 2, 7} {
				if _, ended := v.resume(fmt.Sprint(point, " ", times), 0); ended {
					t.Fatalf("the run ended before it was killed %s %d", point, times)
				}
				v.check()
			}
			v.finish(want)
		})
	}
}

func TestKillAtRandom(t *testing.T) {
	need.Time(t)
	want := undisturbed(t)
	v := newVictim(t)
	for v.kills < 20 {
		moment := 10*time.Millisecond + rand.N(2*shortLease)
		if _, ended := v.resume("", moment); ended {
			v.check()
			v.finish(want)
			next := newVictim(t)
			next.kills = v.kills
			v = next
			continue
		}
		v.check()
	}
	v.finish(want)
}

// A run that is done keeps its end when the process that replays it is killed at a commit.
func TestKillReplay(t *testing.T) {
	t.Setenv(jobKeep, "yes")
	v := newVictim(t)
	ids, over := v.resume("", 0)
	if !over {
		t.Fatal("the run did not end")
	}
	db := open(t, v.file, Options{Lease: shortLease})
	ended := func() journal.RunInfo {
		info, err := db.Find(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		info.Owner = ""
		return info
	}
	want := ended()
	last, err := db.Last(t.Context(), "r")
	if err != nil || want.State != journal.Done || want.Steps == 0 {
		t.Fatalf("%+v, %v", want, err)
	}
	for _, point := range []string{"before commit", "after commit"} {
		for n := 1; ; n++ {
			again, over := v.resume(fmt.Sprint(point, " ", n), 0)
			if at, err := db.Last(t.Context(), "r"); err != nil || at != last || !reflect.DeepEqual(ended(), want) {
				t.Fatalf("killed %s %d: %d records, want %d, %v\n%+v, want\n%+v", point, n, at, last, err, ended(), want)
			}
			if over {
				if again != ids {
					t.Errorf("replayed to\n%swant\n%s", again, ids)
				}
				break
			}
		}
	}
	if v.kills < 4 { // at the commits that take and leave the run
		t.Errorf("the replay was killed %d times", v.kills)
	}
}
