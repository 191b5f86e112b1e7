package progress

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/plan"
)

// The rows of a plan are its nodes, in their order, before the run and after it.
func TestRowsOfAPlan(t *testing.T) {
	p, err := plan.Read([]byte(`{:id "all" :nodes [
		{:op :let :value [1 2] :as :xs}
		{:op :map :over {:slot/id :xs} :as :x :body [{:op :let :value {:slot/id :x} :as :y}]}
		{:op :reduce :body [{:op :let :value {:slot/id :y} :as :ys}]}
		{:op :call :intent :a/b :input {} :as :f :dispatch {:allow-failure? true}}
		{:op :let :value 1 :as :g :when {:failed? :f}}
		{:op :emit :id :end :input {:ys :ys} :when {:present? :ys}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{plan.Hybrid, plan.Lazy} {
		fails := call.Capability{Metadata: call.Metadata{ID: "a/b", Kind: "go", Intents: []string{"a/b"}}, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
			return nil, stone.Fail("runtime/unavailable", "closed")
		}}
		a, err := p.Ashlar(&call.Applicator{Registry: call.NewRegistry(fails)}, plan.Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		d := New(a, Config{Out: io.Discard})
		defer d.Close()
		if _, err := stone.Run(t.Context(), a, stone.Config{Watch: d}); err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, line := range d.tree.Picture(time.Now(), 100) {
			if line.State == view.Pending {
				t.Errorf("%s: the row %q never started", mode, line.Text)
			}
			rows = append(rows, strings.Fields(line.Text)[1])
		}
		if got, want := strings.Join(rows, " "), "all xs x y reduce-3 ys f g end"; got != want {
			t.Errorf("%s: the rows are %s, want %s", mode, got, want)
		}
	}
}
