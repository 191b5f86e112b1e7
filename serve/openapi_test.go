package serve

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/openapi"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/x/gateway"
	"github.com/stonelayer/stone/x/ui"
)

var update = flag.Bool("update", false, "write the document of the API")

// TestOpenAPI: every route is described and nothing else is, and the document that is embedded is that
// of the types and their comments.
func TestOpenAPI(t *testing.T) {
	s, err := New(Config{Journal: memdb.New(t), Protocols: []Protocol{ui.Part, gateway.Part}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	routes := []string{"GET /healthz", "GET /readyz"} // which ask nobody who they are
	for _, r := range s.table() {
		routes = append(routes, r.pattern)
	}
	slices.Sort(routes)
	if described := openapi.Patterns(); !slices.Equal(described, routes) {
		t.Errorf("the document describes\n%q, the routes are\n%q", described, routes)
	}
	want, err := openapi.Generate("..")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(document, want) {
		t.Error("openapi.json is not what the types, their comments and the table say: go test ./serve -run TestOpenAPI -update")
	}
}

// TestOpenAPILint has the document read by the linter of Redocly, with its rules.
func TestOpenAPILint(t *testing.T) {
	program := filepath.Join(peer.Module(t, "@redocly/cli"), "bin", "cli.js")
	peer.Held(t, "@redocly/cli", "the document of the API without a finding")
	cmd := exec.Command("node", program, "lint", "--extends=recommended", "--format=json", "openapi.json")
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	out, err := cmd.Output()
	var found struct {
		Totals *struct{ Errors, Warnings int }
	}
	if json.Unmarshal(out, &found) != nil || found.Totals == nil || found.Totals.Errors+found.Totals.Warnings > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
