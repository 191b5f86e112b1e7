package acp_test

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/memdb"
)

// What a person allowed always holds in later turns of the session.
func TestAlwaysHoldsInASession(t *testing.T) {
	e := start(t, memdb.New(t))
	e.answer = "always"
	id := e.session("mason")
	if said, _ := e.prompt(id, "buy"); !strings.Contains(said, "bought slate") {
		t.Fatal(said)
	}
	e.answer = "no"
	said, _ := e.prompt(id, "buy")
	if len(e.asked) != 1 || !strings.Contains(said, "bought slate") {
		t.Errorf("the second turn asks again, though the person said always: asked %q, said %q", e.asked, said)
	}
}
