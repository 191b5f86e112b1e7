package plan_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/edn"
)

// TestCases runs case files, as section 12 of the contract of calls describes
// them: those in and below the folder STONE_CASES, and the project's own in
// testdata/cases. A relative STONE_CASES is a path from the root of the module, since
// a test is not told where go test was started; if there is nothing, from this
// folder. Without any case file there it fails.
func TestCases(t *testing.T) {
	dir := os.Getenv("STONE_CASES")
	files := caseFiles(t, filepath.FromSlash("../../shared/spec/cases/calls"))
	if dir != "" {
		if files = caseFiles(t, filepath.Join("..", dir)); filepath.IsAbs(dir) || files == nil {
			files = caseFiles(t, dir)
		}
	}
	switch {
	case files == nil && dir != "":
		t.Errorf("no case files (*.edn) in the folder %q, which STONE_CASES names", dir)
	case files == nil:
		t.Log("no case files but those of the project: set STONE_CASES to a folder of some")
	}
	for _, file := range append(files, caseFiles(t, filepath.FromSlash("testdata/cases"))...) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".edn"), func(t *testing.T) { runFile(t, file) })
	}
}

// caseFiles lists the case files in and below a folder; nil if there is none.
func caseFiles(t *testing.T, dir string) (files []string) {
	if linked, err := filepath.EvalSymlinks(dir); err == nil {
		dir = linked
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".edn" {
			files = append(files, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

func runFile(t *testing.T, file string) {
	t.Parallel()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v, err := edn.Read(data, edn.Limits{})
	if err != nil {
		t.Fatalf("%s:%v", file, err)
	}
	for i, c := range v.Elements() {
		id, _ := c.Field("id")
		t.Run(cmp.Or(id.Text(), fmt.Sprint(i)), func(t *testing.T) {
			line, _ := c.Position()
			defer func() {
				if t.Failed() {
					doc, _ := c.Field("doc")
					t.Logf("%s:%d: %s", file, line, doc.Text())
				}
			}()
			// In a bubble time passes only when everybody waits: how long a case takes
			// does not depend on the machine.
			synctest.Test(t, func(t *testing.T) { runCase(t, c) })
		})
	}
}

// runners run a case of each kind, and say what came of it.
var runners = map[string]func(*testing.T, edn.Value) outcome{
	"plan":    runPlan,
	"request": runRequest,
	"result":  runResult,
	"roles":   runRoles,
	"kpi":     runKPI,
}

// inputs are the keys that a case of each kind may have.
var inputs = func() map[string][]string {
	world := []string{"env", "registry", "routing", "policy", "budget", "grant", "principal", "roles", "exec", "checks",
		"judge", "tools", "availability", "mode", "limits", "schemas", "intents", "json"}
	return map[string][]string{
		"plan":    append(slices.Clone(world), "nodes"),
		"request": append(slices.Clone(world), "request", "nodes"),
		"result":  {"result", "json", "intent", "intents", "schemas"},
		"roles":   {"roles", "principal", "effects"},
		"kpi":     {"counters"},
	}
}()

func runCase(t *testing.T, c edn.Value) {
	kind, _ := c.Field("kind")
	run := runners[kind.Text()]
	if run == nil {
		t.Fatalf("unknown kind %s", kind)
	}
	known := append([]string{"id", "doc", "kind", "expect"}, inputs[kind.Text()]...)
	for key := range c.Entries() {
		if name, _ := key.Name(); !slices.Contains(known, name) {
			t.Errorf("unknown key %s of a case of kind %s", key, kind)
		}
	}
	expect, ok := c.Field("expect")
	if !ok {
		t.Fatal("the case expects nothing")
	}
	out := run(t, c)
	if t.Failed() {
		return
	}
	for key, want := range expect.Entries() {
		name, _ := key.Name()
		compare := expectations[name]
		if compare == nil {
			t.Errorf("unknown expectation %s", key)
			continue
		}
		if problem := compare(&out, want); problem != "" {
			t.Errorf("%s: %s", key, problem)
		}
	}
	if t.Failed() {
		t.Logf("calls %v, tools %v, run: %v, refused: %v", out.calls, out.tools, out.err, out.refusal)
	}
}

// expectations compare one thing, and return "" or what differs.
var expectations = map[string]func(o *outcome, want edn.Value) string{
	"emitted":       func(o *outcome, want edn.Value) string { return differ(o.emitted, want) },
	"calls":         func(o *outcome, want edn.Value) string { return order(o.calls, want) },
	"tool-calls":    func(o *outcome, want edn.Value) string { return order(o.tools, want) },
	"cancelled":     func(o *outcome, want edn.Value) string { return order(o.cancelled, want) },
	"failure":       func(o *outcome, want edn.Value) string { return differ(o.failure(), want) },
	"error":         func(o *outcome, want edn.Value) string { return differ(o.error, want) },
	"reason":        func(o *outcome, want edn.Value) string { return differ(o.reason, want) },
	"findings":      func(o *outcome, want edn.Value) string { return set(o.findings, want) },
	"rejected":      func(o *outcome, want edn.Value) string { return differ(o.rejected(), want) },
	"score":         func(o *outcome, want edn.Value) string { return differ(o.score(), want) },
	"must-failed":   func(o *outcome, want edn.Value) string { return set(o.checks(false), want) },
	"should-failed": func(o *outcome, want edn.Value) string { return set(o.checks(true), want) },
	"denied":        func(o *outcome, want edn.Value) string { return set(o.denied, want) },
	"ok":            func(o *outcome, want edn.Value) string { return differ(o.ok, want) },
	"tel":           compareCounters,
	"wall-ms-below": func(o *outcome, want edn.Value) string {
		return o.wallMS(want, func(ms, than int64) bool { return ms < than })
	},
	"wall-ms-at-least": func(o *outcome, want edn.Value) string {
		return o.wallMS(want, func(ms, than int64) bool { return ms >= than })
	},
	"parse-rate":       kpi("parse-rate"),
	"retry-rate":       kpi("retry-rate"),
	"fallback-rate":    kpi("fallback-rate"),
	"judge-pass-rate":  kpi("judge-pass-rate"),
	"must-failed-rate": kpi("must-failed-rate"),
	"by-type":          kpi("by-type"),
	"by-domain":        kpi("by-domain"),
}

func canonical(v any) string {
	var text []byte
	var err error
	switch v := v.(type) {
	case edn.Value:
		if text, err = edn.ToJSON(v); err == nil {
			text, err = canon.AppendJSON(nil, text)
		}
	case json.RawMessage:
		if v == nil {
			return "nothing"
		}
		text, err = canon.AppendJSON(nil, v)
	default:
		text, err = canon.Append(nil, v)
	}
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func differ(got any, want edn.Value) string {
	if g, w := canonical(got), canonical(want); g != w {
		return fmt.Sprintf("got %s, want %s", g, w)
	}
	return ""
}

// order compares names in their order, or, if a set is wanted, which they are: a set
// cannot say that one comes twice.
func order(got []string, want edn.Value) string {
	if want.Kind() == edn.KindSet {
		return set(got, want)
	}
	if got == nil {
		got = []string{}
	}
	return differ(got, want)
}

// set compares names of which each counts once.
func set(got []string, want edn.Value) string {
	got = slices.Compact(slices.Sorted(slices.Values(got)))
	if got == nil {
		got = []string{}
	}
	return differ(got, sortedNames(want))
}

func sortedNames(v edn.Value) edn.Value {
	var names []string
	for _, e := range v.Elements() {
		names = append(names, e.Text())
	}
	slices.Sort(names)
	items := make([]edn.Value, len(names))
	for i, name := range names {
		items[i] = edn.String(name)
	}
	return edn.Vector(items...)
}

func (o *outcome) wallMS(than edn.Value, holds func(ms, than int64) bool) string {
	n, ok := than.Int64()
	if ms := o.wall.Milliseconds(); !ok || !holds(ms, n) {
		return fmt.Sprintf("took %d ms, want %s", ms, than)
	}
	return ""
}

func compareCounters(o *outcome, want edn.Value) string {
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(canonical(o.tally)), &got); err != nil {
		return err.Error()
	}
	if got["calls/failure-types"] == nil {
		got["calls/failure-types"] = json.RawMessage("{}")
	}
	var problems []string
	for key, value := range want.Entries() {
		name, _ := key.Name()
		if problem := differ(got[name], value); problem != "" {
			problems = append(problems, name+": "+problem)
		}
	}
	return strings.Join(problems, "; ")
}

func kpi(name string) func(*outcome, edn.Value) string {
	return func(o *outcome, want edn.Value) string {
		var got map[string]json.RawMessage
		if err := json.Unmarshal([]byte(canonical(o.tally.KPIs())), &got); err != nil {
			return err.Error()
		}
		return differ(got[name], want)
	}
}
