package page_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve/internal/page"
	"github.com/stonelayer/stone/tool"
)

// outlined is a journal whose runs have too many steps to read all of them.
type outlined struct {
	*sqlite.DB
	t *testing.T
}

func (o outlined) Steps(ctx context.Context, run string) ([]journal.Step, error) {
	o.t.Errorf("all steps of %s are read", run)
	return o.DB.Steps(ctx, run)
}

// A conversation's page reads, for each turn, what its agent was told and replied, not all steps.
func TestChatReadsNoWholeRun(t *testing.T) {
	answer := dag.NewType[agent.Text]("answer")
	ag := agent.New("support", answer, script.New(script.Call("look_up", `{}`), script.Text("It was **delivered**.")), agent.Config{
		User: agent.Say("Where is it?"),
		Use:  []agent.Middleware{tool.Func("look_up", "Looks up an order.", func(context.Context, struct{}) (string, error) { return "delivered", nil })},
	})
	kept := memdb.New(t)
	whole := stone.Seq("shop", stone.Seq("desk", ag))
	if _, err := stone.Run(t.Context(), whole, stone.Config{RunID: "a", Recorder: journal.Keep(kept, journal.Options{Labels: map[string]string{"chat": "c"}})}); err != nil {
		t.Fatal(err)
	}
	pages := page.Handler(page.Config{View: func(*http.Request) page.View { return page.View{Journal: outlined{kept, t}} }})
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest("GET", "/chats/c", nil))
	for _, part := range []string{"Where is it?", "It was <strong>delivered</strong>.", "1 tool call", "path=shop%2Fdesk%2Fsupport"} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("the page has no %q: %s", part, w.Body)
		}
	}
}
