package plan_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/x/cel"
)

// doubling makes a plan whose last value has ten to the power of n bytes.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{:nodes [{:op :let :value "xxxxxxxxxx" :as :s0}`)
	for i := range n {
		b.WriteString(fmt.Sprintf(` {:op :let :value [%s] :as :s%d}`, strings.Repeat(fmt.Sprintf("{:slot/id :s%d} ", i), 10), i+1))
	}
	return b.String() + ` {:op :emit :input {:z 1}}]}`
}

func TestLimits(t *testing.T) {
	maps := `{:nodes [{:op :let :value [` + strings.Repeat("1 ", 1000) + `] :as :l}
		{:op :map :over {:slot/id :l} :as :a :body [{:op :map :over {:slot/id :l} :as :b :body [{:op :let :value 1 :as :c}]} {:op :reduce :body [{:op :let :value 1 :as :d}]}]} {:op :reduce :body [{:op :let :value 1 :as :e}]}]}`
	forever := `{:nodes [{:op :let :value {:n 1} :as :s} {:op :loop :max 2147483647 :until "s.n == 2" :body [{:op :let :value "xx" :as :x}]}]}`
	for _, test := range []struct {
		name, plan string
		limits     plan.Limits
		want       error
	}{
		{"nine doublings", doubling(9), plan.Limits{}, kind.Kind("limit/node-bytes")},
		{"seven doublings of small nodes", doubling(6), plan.Limits{NodeBytes: 1 << 30, Bytes: 1 << 20}, kind.Kind("limit/bytes")},
		{"a loop", forever, plan.Limits{Visits: 500}, kind.Kind("limit/visits")},
		{"nested maps", maps, plan.Limits{}, kind.Kind("limit/visits")},
		{"enough", doubling(3), plan.Limits{}, nil},
	} {
		a := compile(t, &call.Applicator{Language: cel.Language}, test.plan, plan.Options{Limits: test.limits})
		_, err := stone.Run(t.Context(), a, stone.Config{})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
		// What was counted was that run's.
		if _, again := stone.Run(t.Context(), a, stone.Config{}); (again == nil) != (err == nil) {
			t.Errorf("%s: the second run: %v", test.name, again)
		}
	}
}

// A capability that answers with a plan that asks it again, twice, and a plan that retries
// without end: the number of invocations is bounded even without a budget.
func TestReturnedPlansAreBounded(t *testing.T) {
	var asked atomic.Int64
	for name, answer := range map[string]string{
		"itself twice":     `{:nodes [{:op :call :intent :a/b :cap/id :c/x :dispatch {:allow-failure? true} :as :a} {:op :call :intent :a/b :cap/id :c/x :dispatch {:allow-failure? true} :as :b}]}`,
		"a loop":           `{:nodes [{:op :loop :max 1000000 :until false :body [{:op :call :intent :a/b :cap/id :c/one :dispatch {:allow-failure? true} :as :a}]}]}`,
		"values":           doubling(9),
		"a loop of values": `{:nodes [{:op :loop :max 1000000 :until false :body [{:op :let :value 1 :as :a}]}]}`,
	} {
		asked.Store(0)
		app := registry(map[string]func(*call.Request) (string, error){
			"c/x":   func(*call.Request) (string, error) { asked.Add(1); return answer, nil },
			"c/one": func(*call.Request) (string, error) { asked.Add(1); return "1", nil },
		})
		a := compile(t, app, `{:nodes [{:op :call :intent :a/b :cap/id :c/x :as :x}]}`, plan.Options{Limits: plan.Limits{Roundtrips: 50, Visits: 1000}})
		if _, err := stone.Run(t.Context(), a, stone.Config{}); err == nil && name != "itself twice" {
			t.Errorf("%s: it ended", name)
		}
		if n := asked.Load(); n < 1 || n > 51 {
			t.Errorf("%s: %d invocations, want at most 51", name, n)
		}
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	for _, dispatch := range []string{`{:retry {:same-cap-max 1000000}}`, `{:repair {:max 101}}`, `{:retry {:fallback-max 101}}`} {
		p := read(t, `{:nodes [{:op :seq :body [{:op :call :intent :a/b :dispatch `+dispatch+` :as :x}]}]}`)
		_, err := p.Ashlar(&call.Applicator{Language: cel.Language}, plan.Options{})
		if err == nil || !strings.Contains(err.Error(), "attempts") {
			t.Errorf("%s: %v", dispatch, err)
		}
		if _, err := p.Ashlar(&call.Applicator{Language: cel.Language}, plan.Options{Limits: plan.Limits{Attempts: 1_000_000}}); err != nil {
			t.Errorf("%s: %v", dispatch, err)
		}
	}
}

func TestLoopThatNeverEnds(t *testing.T) {
	for until, want := range map[string]bool{"false": true, `"1 == 2"`: true, `"x == 2"`: false, "true": false} {
		p := read(t, `{:nodes [{:op :loop :max 3 :until `+until+` :body [{:op :let :value 1 :as :x}]}]}`)
		got := false
		for _, f := range p.Check(&call.Applicator{Language: cel.Language}, plan.Options{}, stone.Config{}) {
			got = got || f.Type == "guard-never-holds" && f.Warning
		}
		if got != want {
			t.Errorf("until %s: warned %v", until, got)
		}
	}
}

// A guard is stopped with the run.
func TestGuardsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := compile(t, registry(map[string]func(*call.Request) (string, error){
		"c/x": func(*call.Request) (string, error) { cancel(); return `{"n":1}`, nil },
	}), `{:nodes [{:op :call :intent :a/b :cap/id :c/x :as :s} {:op :loop :max 2000000000 :until "s.n == 2" :body [{:op :let :value 1 :as :x}]}]}`, plan.Options{})
	if _, err := stone.Run(ctx, a, stone.Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
