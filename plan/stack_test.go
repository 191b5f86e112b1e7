package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/plan"
)

// A call in a returned plan is made by the capability that returned it.
func TestStackThroughPlans(t *testing.T) {
	app := registry(map[string]func(*call.Request) (string, error){
		"a/planner": func(*call.Request) (string, error) {
			return `{:nodes [{:op :call :intent :a/show :cap/id :a/spy :as :seen} {:op :emit :input {:slot/id :seen}}]}`, nil
		},
		"a/spy": func(req *call.Request) (string, error) {
			data, err := json.Marshal(req.Stack)
			return string(data), err
		},
	})
	p := compile(t, app, `{:nodes [{:op :call :intent :a/plan :cap/id :a/planner :as :out} {:op :emit :input {:slot/id :out}}]}`, plan.Options{})
	result, err := stone.Run(t.Context(), p, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Node.JSON(); got != `[{"call":"plan/out","cap/id":"a/planner","intent":"a/plan"}]` {
		t.Error(got)
	}
}
