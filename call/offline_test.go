package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
)

// TestNoWeb has a call whose constraints exclude the web: nothing that needs it is asked, and nothing
// that is asked is granted it.
func TestNoWeb(t *testing.T) {
	answer := dag.NewType[json.RawMessage]("answer")
	var asked []string
	capability := func(id string, needs ...string) call.Capability {
		m := call.Metadata{ID: id, Intents: []string{"find"}, Effects: []string{"net", "fs/read"}}.Needing(needs...)
		return call.Capability{Metadata: m, Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
			asked = append(asked, fmt.Sprint(id, req.Effects))
			return &call.Reply{Type: call.Value, Out: call.JSON(`{}`)}, nil
		}}
	}
	online, local := capability("web/search", "net/http"), capability("disk/search")
	for name, tt := range map[string]struct {
		caps        []call.Capability
		constraints string
		effects     []string
		asked, err  string
	}{
		"free":           {[]call.Capability{online, local}, `{"max": 3}`, nil, "web/search[net/http]", ""},
		"false":          {[]call.Capability{online, local}, `{"no-web": false}`, nil, "web/search[net/http]", ""},
		"no web":         {[]call.Capability{online, local}, `{"no-web": true}`, nil, "disk/search[]", ""},
		"stated effects": {[]call.Capability{local}, `{"no-web": true}`, []string{"net", "fs/read"}, "disk/search[fs/read]", ""},
		"nobody":         {[]call.Capability{online}, `{"no-web": true}`, nil, "", "effects/not-allowed"},
		"no boolean":     {[]call.Capability{local}, `{"no-web": "yes"}`, nil, "", "constraints.no-web"},
		"no object":      {[]call.Capability{local}, `["no-web"]`, nil, "disk/search[]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked = nil
			a := call.New("answer", answer, call.Spec{Applicator: &call.Applicator{Registry: call.NewRegistry(tt.caps...)}, Intent: "find", Effects: tt.effects,
				Constraints: dag.ReaderFunc(func(dag.DAG) (any, error) { return json.RawMessage(tt.constraints), nil })})
			_, err := stone.Run(t.Context(), a, stone.Config{Grant: []string{"net", "fs"}})
			if got := strings.Join(asked, " "); got != tt.asked || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("asked %q, %v; want %q, %q", got, err, tt.asked, tt.err)
			}
		})
	}
}
