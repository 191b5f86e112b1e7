package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/x/mcp/server"
)

// question returns the only question of a run.
func (h *house) question(run any) journal.Question {
	h.Helper()
	all, err := h.journal.Questions(h.Context(), fmt.Sprint(run))
	if err != nil || len(all) != 1 {
		h.Fatal(all, err)
	}
	return all[0]
}

// A model does not answer the question that guards what it does, in any version of the
// protocol: its client asks its user, or nobody is asked.
func TestModelDoesNotAnswer(t *testing.T) {
	h := newHouse(t, nil, server.Config{})
	over := func(version string) *sdk.ClientSession {
		return h.connect(&user{}, false, version, &sdk.StreamableClientTransport{Endpoint: h.url, MaxRetries: -1})
	}
	for name, s := range map[string]*sdk.ClientSession{
		"pipe": h.pipe(&user{}, false, ""), "old pipe": h.pipe(&user{}, false, "2025-06-18"), "http": over(""), "old http": over("2025-11-25"),
	} {
		text, out, _ := call(t, s, "page", `{"text":"slate"}`)
		if run := fmt.Sprint(out["run"]); out["state"] != "waiting" || !strings.Contains(text, "stone answer "+run) {
			t.Fatalf("%s: a run that waits: %q, %v", name, text, out)
		}
		for _, tt := range []struct{ arguments, want string }{
			{`{"run":%q,"question":"page/approve","response":"yes"}`, "unexpected additional properties"},
			{`{"run":%q}`, "a model does not answer: a person answers with"},
		} {
			if text, _, failed := call(t, s, "run_answer", fmt.Sprintf(tt.arguments, out["run"])); !failed || !strings.Contains(text, tt.want) {
				t.Errorf("%s: run_answer said %q, want %q", name, text, tt.want)
			}
		}
		if q := h.question(out["run"]); !q.Open() {
			t.Errorf("%s: the model has answered: %+v", name, q)
		}
	}
}

// With run_answer, a client asks its user again what was left open.
func TestRunAnswerAsksUser(t *testing.T) {
	h := newHouse(t, nil, server.Config{})
	for _, version := range []string{"", "2025-06-18"} {
		u := &user{answers: []*sdk.ElicitResult{{Action: "cancel"}, accept("yes")}}
		s := h.pipe(u, true, version)
		_, out, _ := call(t, s, "page", `{"text":"slate"}`)
		if out["state"] != "waiting" {
			t.Fatalf("%q: %v, want that the question is left open", version, out)
		}
		if text, out, _ := call(t, s, "run_answer", fmt.Sprintf(`{"run":%q}`, out["run"])); text != "yes: About slate" || out["state"] != "done" || len(u.asked) != 2 {
			t.Errorf("%q: run_answer: %q, %v, asked %q", version, text, out, u.asked)
		}
		if q := h.question(out["run"]); q.Response != "yes" {
			t.Errorf("%q: %+v", version, q)
		}
	}
}

// A model that may answer does so in its own name.
func TestModelMayAnswer(t *testing.T) {
	h := newHouse(t, tokens{}, server.Config{ModelMayAnswer: true})
	s := h.connect(&user{}, false, "", &sdk.StreamableClientTransport{Endpoint: h.url, MaxRetries: -1, HTTPClient: &http.Client{Transport: bearer("acme")}})
	_, out, _ := call(t, s, "page", `{"text":"slate"}`)
	if text, _, _ := call(t, s, "run_answer", fmt.Sprintf(`{"run":%q,"question":"1","response":"yes"}`, out["run"])); text != "yes: About slate" {
		t.Error(text)
	}
	if q := h.question("acme." + fmt.Sprint(out["run"])); q.By != "the model of acme" {
		t.Errorf("answered by %q", q.By)
	}
}
