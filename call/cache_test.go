package call_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// asking answers one request in a run of its own.
type asking struct {
	version, input string
	spec           call.Spec
	more           []string // further candidates
	later          time.Duration
	grant          []string
}

func TestCache(t *testing.T) {
	day := call.Cache{MaxAge: new(24 * time.Hour)}
	first := asking{version: "1", input: "1", spec: call.Spec{Cache: day, Done: call.Done{Must: []string{"non-empty"}}}, more: []string{"c"}}
	for _, tc := range []struct {
		name   string
		change func(*asking)
		does   behaviour
		want   int // invocations of both runs
	}{
		{"the same", func(*asking) {}, nil, 1},
		{"off by default", func(a *asking) { a.spec.Cache = call.Cache{} }, nil, 2},
		{"another input", func(a *asking) { a.input = "2" }, nil, 2},
		{"another version", func(a *asking) { a.version = "2" }, nil, 2},
		{"other candidates", func(a *asking) { a.more = []string{"b", "c"} }, nil, 2},
		{"another intent", func(a *asking) { a.spec.Intent = "mail/print" }, nil, 2},
		{"another rule", func(a *asking) { a.spec.Done.Should = []string{"non-empty"} }, nil, 2},
		{"as old as it may be", func(a *asking) { a.later = 24 * time.Hour }, nil, 1},
		{"too old", func(a *asking) { a.later = 24*time.Hour + 1 }, nil, 2},
		{"a shorter age", func(a *asking) { a.later, a.spec.Cache.MaxAge = time.Hour, new(time.Minute) }, nil, 2},
		{"asked again", func(a *asking) { a.spec.Cache.MaxAge = new(time.Duration(0)) }, nil, 2},
		{"a smaller grant", func(a *asking) { a.grant = []string{} }, nil, 2},
		{"a failure", func(*asking) {}, fails("post/strike"), 2},
		{"a rejected answer", func(*asking) {}, answers(`""`), 4}, // of a and c
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, memory := &world{}, memdb.New(t)
			start := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
			second := first
			tc.change(&second)
			account := budget.New(call.Budget{})
			var last verdict
			for i, a := range []asking{first, second} {
				caps := []call.Capability{w.cap(tc.does, call.Metadata{ID: "a", Version: a.version})}
				for _, id := range a.more {
					caps = append(caps, w.cap(tc.does, call.Metadata{ID: id, Cost: call.Cost{USD: 1}, Needs: []string{"net"}}))
				}
				a.spec.Applicator = app(caps...)
				a.spec.Input = dag.Derive(dag.Nothing, func(struct{}) any { return call.JSON(a.input) })
				last = runCall(budget.With(t.Context(), account), a.spec, call.Budget{}, stone.Config{
					RunID: []string{"first", "second"}[i], Now: func() time.Time { return start.Add(a.later) },
					Recorder: journal.Keep(memory, journal.Options{}), Grant: a.grant,
				})
			}
			if len(w.calls) != tc.want || account.Spent().Roundtrips != tc.want {
				t.Fatalf("asked %v, %d round trips; want %d (%v)", w.calls, account.Spent().Roundtrips, tc.want, last.err)
			}
			if from := map[int]string{1: "first"}[tc.want]; last.rec.From != from || from != "" && last.rec.Usage != (call.Usage{Cap: "a", From: "first"}) {
				t.Errorf("the record says of the answer's origin %q and usage %+v, want %q", last.rec.From, last.rec.Usage, from)
			}
		})
	}
}

// The rules of an intent cache its calls; a call can ask again. There is no cache for all.
func TestCacheRules(t *testing.T) {
	w := &world{}
	app := app(w.cap(nil, call.Metadata{ID: "a"}))
	app.Tools = call.NewRegistry(w.cap(nil, call.Metadata{ID: "t"}))
	app.Policy.Intents = map[string]call.Rules{"mail/sort": {Cache: call.Cache{MaxAge: new(time.Hour)}}}
	for want, spec := range map[string]call.Spec{
		"1h0m0s": {Intent: "mail/sort"}, "1m0s": {Intent: "mail/sort", Cache: call.Cache{MaxAge: new(time.Minute)}},
		"0s": {Intent: "mail/sort", Cache: call.Cache{MaxAge: new(time.Duration(0))}}, "none": {Intent: "mail/print"},
	} {
		got := "none"
		if age := app.Effective(spec).Cache.MaxAge; age != nil {
			got = age.String()
		}
		if got != want {
			t.Errorf("%+v: %v, want %v", spec, got, want)
		}
	}
	tool := call.Spec{Applicator: app, Tool: "t", Cache: call.Cache{MaxAge: new(time.Hour)}}
	if err := stone.Validate(call.New("ask", out, tool), stone.Given{}).Err(); err == nil || !strings.Contains(err.Error(), "remove Cache") {
		t.Errorf("a tool with a cache: %v", err)
	}
	app.Policy.Default.Cache = call.Cache{MaxAge: new(time.Hour)}
	if err := stone.Validate(call.New("ask", out, call.Spec{Applicator: app, Cap: "a", Intent: "x/y"}), stone.Given{}).Err(); err == nil || !strings.Contains(err.Error(), "default rules have a Cache") {
		t.Errorf("a cache for all: %v", err)
	}
}

// An answer from the cache says so, and costs nothing.
func TestActFromCache(t *testing.T) {
	w, memory := &world{}, memdb.New(t)
	app := app(w.cap(nil, call.Metadata{ID: "a", Cost: call.Cost{USD: 2}}))
	var last call.Response
	for _, id := range []string{"r-1", "r-2"} {
		trace, spec, err := call.ReadRequest([]byte(`{:proto 1 :trace {:id "` + id + `"} :task {:intent :mail/sort} :input {:n 1} :cache {:max-age-ms 60000}}`))
		if err != nil {
			t.Fatal(err)
		}
		last, _ = app.Act(t.Context(), trace, spec, stone.Config{RunID: id, Recorder: journal.Keep(memory, journal.Options{})})
	}
	text, err := last.MarshalJSON()
	if want := `"usage":{"cap/id":"a","from":"r-1"}`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
	wantCalls(t, w, "a")
	for text, want := range map[string]string{`{}`: "cache/", `{:max-age-ms -1}`: "cache/", `{:max-age-ms 5 :more 1}`: "cache/unknown-keys"} {
		_, _, err := call.ReadRequest([]byte(`{:proto 1 :trace {:id "r"} :task {:intent :mail/sort} :input {} :cache ` + text + `}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}
