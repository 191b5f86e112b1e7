//go:build unix

package killtest

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/step"
	"github.com/stonelayer/stone/tool"
)

// The tests run this binary again as the process that is killed. Its environment has its
// job: the folder of its files; the point at which it kills itself, as "after work 17"
// for the 17th time; the number of pieces of work after which it waits for the file "go";
// its user; its run, if not the tests' run; and the run from which it reuses results.
const (
	childFolder = "STONE_KILLTEST_FOLDER"
	childPoint  = "STONE_KILLTEST_POINT"
	childPause  = "STONE_KILLTEST_PAUSE"
	childUser   = "STONE_KILLTEST_UID"
	childRun    = "STONE_KILLTEST_RUN"
	childReuse  = "STONE_KILLTEST_REUSE"
	childDB     = "STONE_KILLTEST_DB"    // address, for a server
	childServes = "STONE_KILLTEST_SERVE" // its part among processes that compete, see parts
	childLanes  = "STONE_KILLTEST_LANES" // of the fan-out, if not 50
	childSlow   = "STONE_KILLTEST_SLOW"  // duration that lanes take at most
	childClock  = "STONE_KILLTEST_CLOCK" // if it is set, the clock jumps
	childText   = "STONE_KILLTEST_TEXT"  // of the prompt of the agent
	childShape  = "STONE_KILLTEST_SHAPE" // a change of the pipeline: see reshaped
	childForce  = "STONE_KILLTEST_FORCE" // if it is set, a changed pipeline continues
	childHTTP   = "STONE_KILLTEST_HTTP"  // address at which it serves runs
	childHook   = "STONE_KILLTEST_HOOK"  // of the receiver of webhooks
	childBudget = "STONE_KILLTEST_USD"   // of the run; if it is set, each lane makes paidCalls calls of a dollar
)

// The parts of processes that compete, which have a longer lease.
const (
	starts    = "starts"     // does the run
	takesOver = "takes over" // does it when its holder is dead
)

const (
	lease = 50 * time.Millisecond
	retry = 500 * time.Millisecond
	runID = "r"

	serverLease = 300 * time.Millisecond
	rivalLease  = 2 * time.Second // of processes that compete
	serverRetry = 30 * time.Second
)

// openStore opens the store of a run: the database with an address, or else the file of
// its folder.
func openStore(folder, address string) (stores.Store, error) {
	rival := os.Getenv(childServes) != ""
	if address != "" {
		opts := postgres.Options{Lease: serverLease, Retry: serverRetry}
		if rival {
			opts.Lease = rivalLease
		}
		return postgres.Open(context.Background(), fmt.Sprintf("%s&application_name=%d", address, os.Getpid()), opts)
	}
	opts := sqlite.Options{Lease: lease, Retry: retry, RetryResults: retry}
	if rival {
		opts = sqlite.Options{Lease: rivalLease, Retry: serverRetry}
	}
	return sqlite.Open(filepath.Join(folder, "db", "stone.db"), opts)
}

// reached and reachedServer are the hooks of journal/sqlite and journal/postgres for their
// own tests. They are not exported, to keep them out of the public API.
//
//go:linkname reached github.com/stonelayer/stone/journal/sqlite.reached
var reached atomic.Pointer[func(string)]

//go:linkname reachedServer github.com/stonelayer/stone/journal/postgres.reached
var reachedServer atomic.Pointer[func(string)]

// nowFile and nowServer are their clocks.
//
//go:linkname nowFile github.com/stonelayer/stone/journal/sqlite.now
var nowFile func() time.Time

//go:linkname nowServer github.com/stonelayer/stone/journal/postgres.now
var nowServer func() time.Time

// jump makes the clock wrong, and sometimes more so, by up to a week.
func jump() {
	var wrong atomic.Int64
	leap := func() { wrong.Add(int64(rand.N(2*7*24*time.Hour) - 7*24*time.Hour)) }
	leap()
	nowFile = func() time.Time {
		if rand.N(10) == 0 {
			leap()
		}
		return time.Now().Add(time.Duration(wrong.Load()))
	}
	nowServer = nowFile
}

func TestMain(m *testing.M) {
	folder := os.Getenv(childFolder)
	if folder == "" {
		flag.Parse()
		if testing.Short() {
			fmt.Println("left out by -short: these tests take minutes")
			os.Exit(0)
		}
		os.Exit(m.Run())
	}
	if uid, err := strconv.Atoi(os.Getenv(childUser)); err == nil {
		if err := syscall.Setuid(uid); err != nil {
			panic(err)
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the test has ended: see victim.start
	}()
	killAt(os.Getenv(childPoint))
	if os.Getenv(childClock) != "" {
		jump()
	}
	if err := child(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// killAt makes the process kill itself at a point.
func killAt(point string) {
	cut := strings.LastIndex(point, " ")
	if cut < 0 {
		return
	}
	times, err := strconv.Atoi(point[cut+1:])
	if err != nil {
		panic(err)
	}
	left := make(chan int, 1)
	left <- times
	kill := func(at string) {
		if at != point[:cut] {
			return
		}
		n := <-left - 1
		if n == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		left <- n
	}
	reached.Store(&kill)
	reachedServer.Store(&kill)
}

// child does the run, or the rest of it, and prints the ids of its nodes. On SIGTERM it
// starts no further step.
func child(folder string) error {
	db, err := openStore(folder, os.Getenv(childDB))
	if err != nil {
		return err
	}
	lines, err := appendTo(folder, "lines")
	if err != nil {
		return errors.Join(err, db.Close())
	}
	defer lines.Close()
	acks, err := appendTo(folder, "acks")
	if err != nil {
		return errors.Join(err, db.Close())
	}
	defer acks.Close()
	term, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	answers, err := appendTo(folder, "answers")
	if err != nil {
		return errors.Join(err, db.Close())
	}
	defer answers.Close()
	p, j := pipeline(worker(folder, lines, answers)), &witness{Store: db, notes: db.(owed.Store), acks: acks}
	if address := os.Getenv(childHTTP); address != "" {
		return errors.Join(serveAt(term, address, j, worker(folder, lines, answers)), db.Close())
	}
	do := run
	if os.Getenv(childServes) == takesOver {
		do, j.slots = takeOver, make(chan struct{}, 8)
	}
	result, err := do(term, p, j)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	for n := range result.DAG.Nodes() {
		fmt.Println(n.ID())
	}
	return nil
}

func appendTo(folder, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(folder, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

type notes = owed.Store

// witness is a journal that logs acknowledged results.
type witness struct {
	stores.Store
	notes
	acks   *os.File
	slots  chan struct{} // of the leaves worked on at once, nil for any number
	served bool          // many runs: the ledger has their ids
}

func (w *witness) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if w.slots != nil && key.Kind != "step" { // whose leaf has a place already
		w.slots <- struct{}{}
		defer func() { <-w.slots }()
	}
	rec, err := w.Store.Do(ctx, key, work)
	if err != nil || key.Kind == step.Value { // which is made again if it is lost
		return rec, err
	}
	if wait := w.Settled(key.RunID); wait != nil { // a result is acknowledged when it is durable
		go func() {
			if wait(false) == nil {
				_ = w.acknowledged(key)
			}
		}()
		return rec, nil
	}
	return rec, w.acknowledged(key)
}

func (w *witness) acknowledged(key step.Key) error {
	if w.served {
		return jot(w.acks, key.Kind+" "+key.RunID+"/"+key.Path)
	}
	return jot(w.acks, key.Kind+" "+key.Path)
}

// jot adds to the ledger what this process has done, and when.
func jot(file *os.File, what string) error {
	_, err := fmt.Fprintln(file, os.Getpid(), time.Now().UnixNano(), what)
	return err
}

// run does the run. When term is done it starts no further step.
func run(term context.Context, p stone.Ashlar, db *witness) (stone.Result, error) {
	cfg := stone.Config{RunID: cmp.Or(os.Getenv(childRun), runID), Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	cfg.Recorder = journal.Keep(db, journal.Options{Drain: term.Done(), Reuse: os.Getenv(childReuse), Force: os.Getenv(childForce) != ""})
	ctx := context.Background()
	if usd, err := strconv.ParseFloat(os.Getenv(childBudget), 64); err == nil {
		ctx = budget.With(ctx, budget.New(budget.Limits{USD: new(usd)}))
	}
	return stone.Run(ctx, p, cfg)
}

var (
	note    = dag.NewType[int]("note")
	round   = dag.NewType[int]("round")
	item    = dag.NewType[int]("item")
	draft   = dag.NewType[string]("draft")
	joined  = dag.NewType[string]("joined")
	summary = dag.NewType[agent.Text]("summary")
)

// worker returns the function of a piece of work: it notes its path when
// it is called and when it is answered.
func worker(folder string, calls, answers *os.File) func(path string) error {
	var done atomic.Int64
	pause, err := strconv.ParseInt(os.Getenv(childPause), 10, 64)
	if err != nil {
		pause = -1
	}
	slow, err := time.ParseDuration(cmp.Or(os.Getenv(childSlow), "0s"))
	if err != nil {
		panic(err)
	}
	return func(path string) error {
		time.Sleep(time.Millisecond)
		if err := jot(calls, path); err != nil {
			return err
		}
		if slow > 0 && strings.HasSuffix(path, "/lane") {
			time.Sleep(rand.N(slow))
		}
		if err := jot(answers, path); err != nil {
			return err
		}
		if done.Add(1) != pause {
			return nil
		}
		for {
			_, err := os.Stat(filepath.Join(folder, "go"))
			if !errors.Is(err, os.ErrNotExist) {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// pipeline has 10 leaves, a loop of 4 rounds, a fan-out of 50 or more lanes and an agent of
// 5 turns with two tool calls each but the last. All but the agent can be reused.
// Each piece of work is given its path.
func pipeline(work func(path string) error) stone.Ashlar {
	var steps []stone.Ashlar
	for i := range 10 {
		steps = append(steps, stone.Func0(fmt.Sprint("leaf-", i), note, func(ctx context.Context) (int, error) {
			return i, work(stone.In(ctx).Path())
		}, stone.Reusable()))
	}
	again := stone.New("again", round, func(ctx context.Context, d dag.DAG) (int, error) {
		before, err := dag.All(round).From(d)
		return len(before), errors.Join(err, work(stone.In(ctx).Path()))
	}, stone.Queries(dag.Maybe(dag.All(round))), stone.Reusable())
	lane := stone.Func("lane", item, draft, func(ctx context.Context, i int) (string, error) {
		if os.Getenv(childBudget) != "" {
			return fmt.Sprint("lane ", i), pay(ctx, work)
		}
		return fmt.Sprint("lane ", i), work(stone.In(ctx).Path())
	}, stone.Reusable())
	join := stone.Func("join", dag.All(draft), joined, func(ctx context.Context, all []string) (string, error) {
		return strings.Join(all, ", "), work(stone.In(ctx).Path())
	}, stone.Reusable())
	number, err := strconv.Atoi(cmp.Or(os.Getenv(childLanes), "50"))
	if err != nil {
		panic(err)
	}
	lanes := func(dag.DAG) (items []int, err error) {
		for i := range number {
			items = append(items, i)
		}
		return items, nil
	}
	return stone.Seq("all", reshaped(work, append(steps,
		stone.Loop("loop", again, stone.Until(round, func(n int) bool { return n == 3 }), 9),
		stone.Map("fan", dag.ReaderFunc(lanes), item, lane),
		stone.Reduce(join),
		writer(work),
	))...)
}

// reshaped changes the steps of the pipeline as the environment says.
func reshaped(work func(path string) error, steps []stone.Ashlar) []stone.Ashlar {
	leaf := func(name string) stone.Ashlar {
		return stone.Func0(name, note, func(ctx context.Context) (int, error) { return 9, work(stone.In(ctx).Path()) }, stone.Reusable())
	}
	switch os.Getenv(childShape) {
	case "added":
		return append(steps, leaf("last"))
	case "removed":
		return slices.Delete(steps, 9, 10)
	case "renamed":
		steps[9] = leaf("leaf-nine")
	case "moved":
		steps[8], steps[9] = steps[9], steps[8]
	}
	return steps
}

// inTool is a point after the work of a tool.
const inTool = "in a tool"

// writer is the agent. The output of its model depends only on the conversation, as for a
// model that outlives the process.
func writer(work func(path string) error) stone.Ashlar {
	model := script.Func(func(_ int, req *llm.Request) script.Answer {
		turn := 1
		for _, m := range req.Messages {
			if len(m.ToolCalls) > 0 {
				turn++
			}
		}
		if err := work(fmt.Sprint("all/write/turn-", turn)); err != nil {
			return script.Fail(err)
		}
		if turn == 5 {
			return script.Text("written")
		}
		return script.Calls(call(turn, 1), call(turn, 2))
	})
	type line struct {
		Text string `json:"text"`
	}
	appendLine := tool.Func("append_line", "Appends a line to the file.", func(ctx context.Context, in line) (string, error) {
		// A tool knows that its call may be a repetition. Reporting that would give the
		// model another result, and the run another DAG.
		text, err := os.ReadFile(filepath.Join(os.Getenv(childFolder), "lines"))
		if times := strings.Count(string(text), " "+stone.In(ctx).Path()+"\n"); err != nil || times >= journal.Attempt(ctx) {
			return "", fmt.Errorf("done %d times before attempt %d: %w", times, journal.Attempt(ctx), err)
		}
		err = work(stone.In(ctx).Path())
		if kill := reached.Load(); kill != nil {
			(*kill)(inTool)
		}
		return "appended " + in.Text, err
	})
	return agent.New("write", summary, llm.Priced(model, budget.Price{}), agent.Config{
		System: agent.Say(cmp.Or(os.Getenv(childText), "You write lines.")), User: agent.Say("Write."), Use: []agent.Middleware{appendLine},
	})
}

func call(turn, n int) llm.ToolCall {
	return llm.ToolCall{ID: fmt.Sprintf("call-%d-%d", turn, n), Name: "append_line", Input: fmt.Appendf(nil, `{"text":"%d of turn %d"}`, n, turn)}
}
