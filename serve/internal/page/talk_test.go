package page_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve/internal/page"
	"github.com/stonelayer/stone/tool"
)

// TestTalk looks at the conversation of an agent that waits for a permission, and at the one that has
// ended.
func TestTalk(t *testing.T) {
	answer := dag.NewType[agent.Text]("answer")
	warm := 0.7
	type order struct {
		Order int `json:"order"`
	}
	refunded := 0
	ag := agent.New("support", answer, script.New(
		script.Call("look_up", `{"order":7}`),
		script.Call("refund", `{"order":7}`),
		script.Text("**Refunded** 39.00."),
	), agent.Config{
		System: agent.Say("You help customers."), User: agent.Say("I want my money back."), Params: llm.Params{Temperature: &warm},
		Use: []agent.Middleware{
			tool.Func("look_up", "Looks up an order.", func(context.Context, order) (string, error) { return "39.00, delivered", nil }),
			tool.Confirm(tool.Func("refund", "Refunds an order.", func(_ context.Context, in order) (string, error) {
				refunded = in.Order
				return "refunded 39.00", nil
			}), tool.Ask),
		},
	})
	kept := memdb.New(t)
	run := func() error {
		_, err := stone.Run(t.Context(), ag, stone.Config{RunID: "a", Recorder: journal.Keep(kept, journal.Options{})})
		return err
	}
	if err := run(); err == nil {
		t.Fatal("the run does not wait for its question")
	}
	pages := page.Handler(page.Config{View: func(*http.Request) page.View { return page.View{Journal: kept} }})
	talk := func() (whole, told string) {
		t.Helper()
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest("GET", "/runs/a/step?path=support", nil))
		whole = w.Body.String()
		for _, s := range regexp.MustCompile(`(?s)<article class="message (\w+)">|<summary><code>(.*?)</code>|class="(?:words|answer|markdown)"(?: tabindex="0")?>(.*?)</(?:div|pre)>`).FindAllStringSubmatch(whole, -1) {
			told += s[1] + s[2] + s[3] + "\n"
		}
		return whole, told
	}
	whole, told := talk()
	sofar := "system\nYou help customers.\nuser\nI want my money back.\nassistant\nlook_up\n39.00, delivered\nassistant\nrefund\n"
	if told != sofar {
		t.Errorf("so far: %q, want %q", told, sofar)
	}
	for _, part := range []string{"<dt>temperature</dt><dd>0.7</dd>", "<code>look_up</code> <code>refund</code>", "It waits for an answer", "data-poll"} {
		if !strings.Contains(whole, part) {
			t.Errorf("the page of a waiting agent has no %q: %s", part, whole)
		}
	}
	begun := partsOf(whole)
	all, err := kept.Questions(t.Context(), "a")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if err := kept.Answer(t.Context(), "a", all[0].Path, ask.Answer{Response: "yes", By: "token boss"}); err != nil {
		t.Fatal(err)
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	whole, told = talk()
	if want := sofar + "refunded 39.00\nassistant\n<p><strong>Refunded</strong> 39.00.</p>\n\n"; told != want || refunded != 7 {
		t.Errorf("at the end: %q, want %q", told, want)
	}
	for _, part := range []string{"<b>yes</b> by token boss", `<a href="/runs/a/step?path=support%2Fturn-3">turn-3</a>`} {
		if !strings.Contains(whole, part) {
			t.Errorf("the page has no %q: %s", part, whole)
		}
	}
	if got := partsOf(whole); begun != "waits figures outcome conversation content made" || got != begun {
		t.Errorf("an open page replaces the parts %q by %q", begun, got)
	}
	if strings.Contains(whole, "<h2>Content</h2>") {
		t.Error("the answer is on the page twice")
	}
	var file bytes.Buffer
	if err := page.Write(t.Context(), &file, kept, "a"); err != nil || !strings.Contains(file.String(), "You help customers.") || strings.Contains(file.String(), "href") {
		t.Errorf("%v: %s", err, &file)
	}
}

// partsOf returns the ids of the parts that a live page replaces: one that is on no open page never appears on it.
func partsOf(page string) string {
	ids := []string{}
	for _, found := range regexp.MustCompile(`id="(\w+)" data-part`).FindAllStringSubmatch(page, -1) {
		ids = append(ids, found[1])
	}
	return strings.Join(ids, " ")
}
