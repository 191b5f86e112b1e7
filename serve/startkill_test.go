//go:build unix

package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// Of a server in a process of its own: the log of its pipeline, the lease of its runs, and the
// moment at which it kills itself, which is the number of a call to its journal.
const (
	servedLog    = "STONE_TEST_LOG"
	servedLease  = "STONE_TEST_LEASE"
	servedMoment = "STONE_TEST_MOMENT"
)

// logged has a step that writes the id of its run to the log.
func logged() stone.Ashlar {
	return stone.Func("log", dag.NewType[string]("word"), dag.NewType[string]("told"), func(ctx context.Context, word string) (string, error) {
		f, err := os.OpenFile(os.Getenv(servedLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, stone.In(ctx).RunID())
		return word + "!", err
	})
}

// mortal kills its process at a moment: before or after a call that writes for a run.
type mortal struct {
	kept
	left *atomic.Int64
}

func newMortal(j kept) journal.Journal {
	moment, err := strconv.ParseInt(os.Getenv(servedMoment), 10, 64)
	if err != nil {
		return j
	}
	m := mortal{j, new(atomic.Int64)}
	m.left.Store(moment)
	return m
}

func (m mortal) moment() {
	if m.left.Add(-1) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (m mortal) Acquire(ctx context.Context, id string) (journal.RunInfo, error) {
	m.moment()
	defer m.moment()
	return m.kept.Acquire(ctx, id)
}

func (m mortal) Begin(ctx context.Context, r journal.RunInfo, input dag.DAG) error {
	m.moment()
	defer m.moment()
	return m.kept.Begin(ctx, r, input)
}

func (m mortal) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	m.moment()
	defer m.moment()
	rec, err := m.kept.Do(ctx, key, func(ctx context.Context) (step.Record, error) {
		m.moment()
		return work(ctx)
	})
	if wait := m.kept.Settled(key.RunID); wait != nil { // until its result is durable, a step is in flight
		err = errors.Join(err, wait(true))
	}
	return rec, err
}

func (m mortal) End(ctx context.Context, id string, o journal.Outcome) error {
	m.moment()
	defer m.moment()
	return m.kept.End(ctx, id, o)
}

// A caller that got no reply sends its request again, to another server. Wherever the first one
// died while it started the run, the run is then done, and its work was done once.
func TestKillStart(t *testing.T) {
	need.Time(t)
	journals(t, func(t *testing.T, at string) {
		log := filepath.Join(t.TempDir(), "log")
		put := func(s *served, id string) error {
			req, err := http.NewRequest("PUT", s.url+"/v1/runs/"+id, strings.NewReader(`{"pipeline":"logged","input":"hello"}`))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		env := []string{servedLog + "=" + log, servedLease + "=200ms"}
		survivor := startServer(t, at, env...)
		kills := 0
		for ; ; kills++ {
			id := fmt.Sprint("r", kills+1)
			s := startServer(t, at, append(env, fmt.Sprint(servedMoment, "=", kills+1))...)
			err := put(s, id)
			if err == nil { // it may die after its reply
				resp, ended := http.Get(s.url + "/v1/runs/" + id + "/result?wait=60s")
				if err = ended; err == nil {
					resp.Body.Close()
				}
			}
			over := err == nil // it was not killed
			if s.stop(); over {
				break
			}
			if err := put(survivor, id); err != nil {
				t.Fatal(err)
			}
			resp, err := http.Get(survivor.url + "/v1/runs/" + id + "/result?wait=60s")
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			var result any
			if json.Unmarshal(text, &result) != nil || resp.StatusCode != 200 || !strings.Contains(string(text), "hello!") {
				t.Errorf("killed at moment %d, and asked again: %s %s", kills+1, resp.Status, text)
			}
			worked, err := os.ReadFile(log)
			if n := strings.Count(string(worked), id+"\n"); n != 1 || err != nil {
				t.Errorf("killed at moment %d: the work was done %d times, %v", kills+1, n, err)
			}
		}
		if kills < 7 { // before and after Acquire, Begin and Do, and within Do
			t.Errorf("the server was killed %d times, want it at each call of a start", kills)
		}
		t.Logf("killed at %d moments", kills)
	})
}
