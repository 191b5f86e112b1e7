package plan_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/docs"
	"github.com/stonelayer/stone/plan"
)

// TestReference holds the pages about plans and envelopes to the fields that the errors list.
func TestReference(t *testing.T) {
	probes := map[string]string{
		"plan.md Plan":     `{:?? 1 :nodes []}`,
		"plan.md requires": `{:nodes [{:op :call :intent :a/b :requires {:?? 1}}]}`,
		"plan.md dispatch": `{:nodes [{:op :call :intent :a/b :dispatch {:?? 1}}]}`,
	}
	for _, op := range []string{"let", "call", "tool", "emit", "ask", "seq", "match", "parallel", "map", "reduce", "loop", "apply"} {
		probes["plan.md "+op] = `{:nodes [{:op :` + op + ` :?? 1}]}`
	}
	requests := map[string]string{
		"envelope.md Fields of a request": `{:proto 1 :trace {:id "t"} :task {:intent :a/b} :input {} :?? 1}`,
		"envelope.md Trace":               `{:proto 1 :trace {:id "t" :?? 1} :task {:intent :a/b} :input {}}`,
		"envelope.md Task":                `{:proto 1 :trace {:id "t"} :task {:intent :a/b :?? 1} :input {}}`,
		"envelope.md Stack":               `{:proto 1 :trace {:id "t"} :task {:intent :a/b} :input {} :stack [{:call "a" :cap/id :b :?? 1}]}`,
	}
	has := map[string][]string{}
	for _, page := range []string{"plan.md", "envelope.md"} {
		text, err := os.ReadFile("../docs/reference/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for heading, keys := range docs.Keys(string(text)) {
			has[page+" "+heading] = keys
		}
	}
	// Stone writes responses: no reader lists their fields.
	for _, answer := range []string{"Fields of a response", "Result", "Error"} {
		delete(has, "envelope.md "+answer)
	}
	page, err := os.ReadFile("../docs/reference/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := plan.Reference(string(page)); want != string(page) {
		if *update {
			err = os.WriteFile("../docs/reference/plan.md", []byte(want), 0o644)
		}
		if !*update || err != nil {
			t.Error("plan.md differs from the table of operations: write it with -update", err)
		}
	}
	known := regexp.MustCompile(`unknown field \?\?; known are ([a-z0-9/?, -]+)`)
	check := func(section, probe, faults string) {
		t.Helper()
		found := known.FindStringSubmatch(faults)
		if found == nil {
			t.Errorf("%s: %s: %s", section, probe, faults)
			return
		}
		want := strings.Split(strings.TrimSpace(found[1]), ", ")
		if !slices.Equal(has[section], want) {
			t.Errorf("%s: the page has %q, the errors list %q", section, has[section], want)
		}
		delete(has, section)
	}
	for section, probe := range probes {
		p, err := plan.Read([]byte(probe))
		if err != nil {
			t.Fatal(err)
		}
		var faults strings.Builder
		for _, f := range p.Check(&call.Applicator{}, plan.Options{}, stone.Config{}) {
			faults.WriteString(f.String() + "\n")
		}
		check(section, probe, faults.String())
	}
	for section, probe := range requests {
		if _, _, err := call.ReadRequest([]byte(probe)); err != nil {
			check(section, probe, err.Error())
		} else {
			t.Errorf("%s: %s is no fault", section, probe)
		}
	}
	for _, section := range slices.Sorted(maps.Keys(has)) {
		t.Errorf("%s has fields, and no probe", section)
	}
}
