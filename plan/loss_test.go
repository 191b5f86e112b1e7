package plan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/x/cel"
)

// A plan says which lanes it may lose, is warned where it does not, and hears of it in its own words.
func TestLanesThatAreLost(t *testing.T) {
	const silent = "[lanes-may-be-lost] n: 1:10: a lane that fails is dropped, and the others are the result: add all, if none may fail, or quorum, the number of lanes that must succeed (at nodes[0])"
	over := func(list, loss string) string {
		return `{:op :map :over ` + list + ` :as :n ` + loss + ` :body [{:op :let :value {:cel "6 / n"} :as :m}]} {:op :reduce :body [{:op :emit :input :m}]}`
	}
	lanes := func(loss string) string {
		return `{:op :parallel ` + loss + ` :lanes [[{:op :let :value {:cel "6 / 1"} :as :m}] [{:op :let :value {:cel "6 / 0"} :as :k}]]} {:op :reduce :body [{:op :emit :input :m}]}`
	}
	for nodes, want := range map[string]struct{ warning, result string }{
		over("[1 0 2]", ""):                         {silent, "[6,3]"},
		over("[1 0 2]", ":all true"):                {"", "lanes-failed"},
		over("[1 0 2]", ":all false"):               {silent, "[6,3]"},
		over("[1 0 2]", ":quorum 2"):                {"", "[6,3]"},
		over("[1 0 2]", ":quorum 3"):                {"", "lanes-failed"},
		over("[]", ":all true"):                     {"", "map-empty at plan/n: the list to map over is empty: to allow this, add allow-empty"},
		over("[]", ":allow-empty true"):             {silent, "[]"},
		over("[1]", `:quorum 0`):                    {"1:45: expected an integer from 1 to 2147483647, found 0 (at nodes[0].quorum)", ""},
		over("[1]", `:all "yes"`):                   {`1:42: expected true or false, found the string "yes" (at nodes[0].all)`, ""},
		lanes(":all true"):                          {"", "lanes-failed"},
		lanes(":quorum 3"):                          {"1:33: expected at most 2, the number of lanes, found 3 (at nodes[0].quorum)", ""},
		strings.ReplaceAll(lanes(""), "/ 0", "/ 2"): {strings.Replace(silent, "n:", "parallel-1:", 1), "6"},
	} {
		p := read(t, "{:nodes ["+nodes+"]}")
		app := &call.Applicator{Language: cel.Language}
		found := fmt.Sprint(p.Check(app, plan.Options{}, stone.Config{}))
		if !strings.Contains(found, want.warning) || want.warning == "" && strings.Contains(found, "lanes-may") || strings.Contains(found, "Quorum(") {
			t.Errorf("%s: found %s, want %q", nodes, found, want.warning)
		}
		_, err := p.Ashlar(app, plan.Options{})
		if want.result == "" {
			if err == nil {
				t.Errorf("%s is no fault", nodes)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", nodes, err)
			continue
		}
		for _, p := range []*plan.Plan{p, read(t, p.String())} {
			a, err := p.Ashlar(app, plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			result, err := stone.Run(context.Background(), a, stone.Config{})
			got := fmt.Sprint(err)
			if err == nil {
				out, err := plan.Emission.From(result.DAG)
				got = string(out) + strings.TrimSuffix(fmt.Sprint(err), "<nil>")
			}
			if !strings.Contains(got, want.result) {
				t.Errorf("%s: got %s, want %s", p, got, want.result)
			}
		}
	}
}
