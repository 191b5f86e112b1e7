package plan_test

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/plan"
)

// Nodes beyond the limit of a returned plan are counted and not made.
func TestManyNodesAreNotRead(t *testing.T) {
	answer := `{:nodes [` + strings.Repeat(`{:op :let :value 1 :as :x} `, 20_000) + `]}`
	app := registry(map[string]func(*call.Request) (string, error){"c/x": func(*call.Request) (string, error) { return answer, nil }})
	a := compile(t, app, `{:nodes [{:op :call :intent :a/b :cap/id :c/x :as :x}]}`, plan.Options{})
	if _, err := stone.Run(t.Context(), a, stone.Config{}); err == nil || !strings.Contains(err.Error(), "the plan has 20000 nodes, at most 256") {
		t.Errorf("got %v", err)
	}
}
