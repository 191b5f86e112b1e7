package plan_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/step"
	"github.com/stonelayer/stone/x/cel"
)

// everyForm has all ops and all ways in which a call is paid for. The race starts its
// second candidate only when the first has failed: a capability that a race cancelled is invoked again.
const everyForm = `{:id "every-form" :nodes [
	{:op :let :value [1 2] :as :items}
	{:op :call :intent :x/do :as :first :dispatch {:candidates [:cap/flaky :cap/good] :retry {:same-cap-max 1}} :done {:must #{:asked :paid}}}
	{:op :call :intent :x/do :as :best :dispatch {:candidates [:cap/good :cap/other] :strategy :tournament}}
	{:op :call :intent :x/do :as :soonest :dispatch {:candidates [:cap/flaky :cap/good] :strategy :race :hedge-ms 3600000}}
	{:op :call :intent :x/do :as :mended :dispatch {:candidates [:cap/poor] :repair {:cap/id :cap/good :max 1}} :done {:must #{:good}}}
	{:op :call :intent :x/do :as :lost :dispatch {:candidates [:cap/flaky] :allow-failure? true}}
	{:op :call :intent :x/do :as :inner :input {:n {:slot/id :items}} :dispatch {:candidates [:cap/planner]}}
	{:op :tool :tool/id :tool/one :as :used}
	{:op :ask :question "go on?" :choices ["yes" "no"] :as :answer}
	{:op :seq :body [{:op :call :intent :x/do :cap/id :cap/good :input {:after {:slot/id :answer}} :as :more}]}
	{:op :match :on {:slot/id [:best :text]} :branches {"good" [{:op :call :intent :x/do :cap/id :cap/good :as :matched}] "other" [{:op :let :value 1 :as :matched}]}}
	{:op :loop :max 3 :until "round.n == 1" :body [{:op :call :intent :x/do :cap/id :cap/counter :as :round}]}
	{:op :map :over {:slot/id :items} :as :item :body [{:op :call :intent :x/do :cap/id :cap/good :input {:n {:slot/id :item}} :as :each}]}
	{:op :reduce :body [{:op :call :intent :x/do :cap/id :cap/other :input {:all {:slot/id :each}} :as :sum}]}
	{:op :parallel :lanes [[{:op :call :intent :x/do :cap/id :cap/good :as :left}] [{:op :call :intent :x/do :cap/id :cap/other :as :right}]]}
	{:op :reduce :body [{:op :let :value [{:slot/id :left} {:slot/id :right}] :as :both}]}
	{:op :emit :input {:both :both :sum :sum :inner :inner :mended :mended}}]}`

// A counted world knows how often each of its capabilities was asked.
type counted struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *counted) cap(id string, answer func(*call.Request) (string, error)) call.Capability {
	m := call.Metadata{ID: id, Kind: "go", CanProduce: []string{call.Value, call.Plan}}
	return call.Capability{Metadata: m, Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
		c.mu.Lock()
		c.seen[id+" "+req.Intent]++
		c.mu.Unlock()
		text, err := answer(req)
		if strings.HasPrefix(text, "{:nodes") {
			return &call.Reply{Type: call.Plan, Plan: []byte(text)}, err
		}
		return &call.Reply{Out: call.JSON(text), Usage: call.Usage{Usage: budget.Usage{InputTokens: 1}}}, err
	}}
}

func (c *counted) app() *call.Applicator {
	says := func(text string) func(*call.Request) (string, error) {
		return func(*call.Request) (string, error) { return text, nil }
	}
	on := true
	app := &call.Applicator{
		Language: cel.Language,
		Registry: call.NewRegistry(
			c.cap("cap/good", says(`{"text":"good"}`)), c.cap("cap/other", says(`{"text":"other"}`)), c.cap("cap/poor", says(`{"text":"poor"}`)),
			c.cap("cap/flaky", func(*call.Request) (string, error) { return "", &call.Error{Type: "runtime/unavailable"} }),
			c.cap("cap/planner", says(`{:nodes [{:op :call :intent :x/do :cap/id :cap/other :input {:n {:slot/id :items}} :as :within}
				{:op :call :intent :x/do :cap/id :cap/good :input {:w {:slot/id :within}} :as :within2} {:op :emit :input {:final :within2}}]}`)),
			c.cap("cap/judge", func(req *call.Request) (string, error) {
				if strings.Contains(string(req.Input), `"text":"good"`) {
					return `{"score":0.9}`, nil
				}
				return `{"score":0.5}`, nil
			}),
			c.cap("cap/counter", func(*call.Request) (string, error) {
				c.mu.Lock()
				defer c.mu.Unlock()
				return fmt.Sprintf(`{"n":%d}`, c.seen["cap/counter x/do"]-1), nil
			}),
			c.cap("cap/check", says(`true`)),
		),
		Tools: call.NewRegistry(c.cap("tool/one", says(`{"ok":1}`))),
	}
	app.Policy.Default.Judge = call.Judge{On: &on, Cap: "cap/judge"}
	app.Checks = map[string]call.Check{
		"asked": call.CheckBy("asked", app.Registry, "cap/check"),
		"paid": call.Paid("paid", func(context.Context, call.Subject) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.seen["paid"]++
			return nil
		}),
		"good": func(_ context.Context, s call.Subject) error {
			if !strings.Contains(string(s.Out), "good") {
				return errors.New("it is not good")
			}
			return nil
		},
	}
	return app
}

var errKilled = errors.New("killed")

// A dying journal keeps so many records and then no more: neither does anything start,
// nor is a leaf kept that has done its work.
type dying struct {
	*sqlite.DB
	mu    sync.Mutex
	left  int
	after bool // leaves die after their work
}

func (d *dying) dies() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left--
	return d.left < 0
}

func (d *dying) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	return d.DB.Do(ctx, key, func(ctx context.Context) (step.Record, error) {
		late := d.after && key.Kind == "leaf"
		if !late && d.dies() {
			return step.Record{}, errKilled
		}
		rec, err := work(ctx)
		if err == nil && late && d.dies() {
			err = errKilled
		}
		return rec, err
	})
}

type yes struct{}

func (yes) Ask(context.Context, ask.Question) (ask.Answer, error) {
	return ask.Answer{Response: "yes"}, nil
}

// A run that is killed at any step, and resumed, asks everybody as often as one that
// is not, and comes to the same end.
func TestKilledAtEveryStep(t *testing.T) {
	for _, mode := range []string{plan.Strict, plan.Hybrid, plan.Lazy} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, after), func(t *testing.T) {
				t.Parallel()
				want, end, _ := killed(t, mode, 1<<30, after)
				for kill := 0; ; kill++ {
					got, out, lived := killed(t, mode, kill, after)
					if lived {
						break
					}
					if mode != plan.Strict { // who is about to fail while another is killed does so again
						got["cap/flaky x/do"] = want["cap/flaky x/do"]
					}
					if !maps.Equal(got, want) || out != end {
						t.Errorf("killed at %d: emitted %s, want %s; asked %v, want %v", kill, out, end, got, want)
					}
				}
			})
		}
	}
}

// killed runs the plan once, killed after so many records, and once to its end.
func killed(t *testing.T, mode string, kill int, after bool) (seen map[string]int, out string, lived bool) {
	c := &counted{seen: map[string]int{}}
	synctest.Test(t, func(t *testing.T) {
		p := compile(t, c.app(), everyForm, plan.Options{Mode: mode})
		cfg := stone.Config{RunID: "once", Frontend: yes{}}
		memory := memdb.New(t)
		_, err := stone.Run(t.Context(), p, kept(cfg, &dying{DB: memory, left: kill, after: after}))
		lived = err == nil
		result, err := stone.Run(t.Context(), p, kept(cfg, memory))
		if err != nil {
			t.Fatalf("killed at %d: %v", kill, err)
		}
		emitted, err := plan.Emission.From(result.DAG)
		if err != nil {
			t.Fatal(err)
		}
		out = string(emitted)
	})
	return c.seen, out, lived
}
