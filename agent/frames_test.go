package agent_test

import (
	"context"
	"iter"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// mostFrames is how many functions of Stone may be between a run and the model of an agent, with a journal
// and a budget. Whoever reads a stack trace reads them all.
const mostFrames = 38

func TestFrames(t *testing.T) {
	m := &framed{canned: model(says("good"))}
	ctx := budget.With(t.Context(), budget.New(budget.Limits{Tokens: new(1_000_000)}))
	cfg := stone.Config{Recorder: journal.Keep(memdb.New(t), journal.Options{})}
	if _, err := stone.Run(ctx, agent.New("talk", note, m, agent.Config{User: agent.Say("begin")}), cfg); err != nil {
		t.Fatal(err)
	}
	if len(m.frames) == 0 || len(m.frames) > mostFrames {
		t.Errorf("%d frames, want at most %d:\n%s", len(m.frames), mostFrames, strings.Join(m.frames, "\n"))
	}
}

// framed keeps the functions of Stone on the stack of a request.
type framed struct {
	*canned
	frames []string
}

func (f *framed) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		pcs := make([]uintptr, 500)
		stack := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)]) // inlined functions are among them
		for more := true; more; {
			var at runtime.Frame
			at, more = stack.Next()
			if strings.Contains(at.Function, "stonelayer/stone") && !strings.HasSuffix(at.File, "_test.go") {
				f.frames = append(f.frames, at.Function+" "+filepath.Base(at.File))
			}
		}
		f.canned.Stream(ctx, req)(yield)
	}
}
