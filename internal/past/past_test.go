package past

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/step"
)

// slow is a run with many results of one request, whose reader returns when all requests have come.
type slow struct{ all *sync.WaitGroup }

func (s slow) Step(_ context.Context, _ string, nth int) (*step.Record, error) {
	s.all.Done()
	s.all.Wait()
	return &step.Record{Content: fmt.Append(nil, nth)}, nil
}

func (slow) Leaf(context.Context, string, func(dag.DAG) bool) (*dag.Node, error) { return nil, nil }

func (slow) Person(context.Context, string) (ask.Answer, bool, error) {
	return ask.Answer{}, false, nil
}

// Equal requests of several lanes take one result each, as the earlier run got them.
func TestEqualRequestsAtOnce(t *testing.T) {
	const lanes = 8
	var all sync.WaitGroup
	all.Add(lanes)
	ctx := With(t.Context(), &Run{Source: slow{&all}})
	var exchanges [lanes]Exchange
	var ended sync.WaitGroup
	for i := range exchanges {
		ended.Go(func() {
			if err := Ask(Noting(ctx, &exchanges[i]), nil, "request"); err == nil {
				t.Error("the request is new")
			}
		})
	}
	ended.Wait()
	seen := map[string]bool{}
	for _, x := range exchanges {
		seen[string(x.found.Content)] = true
	}
	if len(seen) != lanes {
		t.Errorf("%d lanes took %d results", lanes, len(seen))
	}
}
