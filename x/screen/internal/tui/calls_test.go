package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	llmcall "github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/plan"
)

// TestCallsOfPlan checks that the text of a call is shown while the call runs, that a
// rejected text is marked, and that usage is counted once, even if reported twice.
func TestCallsOfPlan(t *testing.T) {
	seen := make(chan bool)
	slow := call.Capability{Metadata: call.Metadata{ID: "slow"}, Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
		req.Voice.Say(event.Text, "far too long, and ")
		<-seen
		return &call.Reply{Out: call.JSON(`{"text":"far too long"}`), Usage: call.Usage{Usage: budget.Usage{InputTokens: 7, OutputTokens: 3, USD: 0.5}}}, nil
	}}
	n, m := 20, 10
	answer := script.Text("hi")
	answer.Reply.Usage = llm.Usage{InputTokens: &n, OutputTokens: &m}
	app := &call.Applicator{Registry: call.NewRegistry(slow, llmcall.New(call.Metadata{ID: "quick"}, llmcall.Config{Model: script.New(answer), Name: "tiny"}))}
	p, err := plan.Read([]byte(`{:id "poem" :nodes [{:op :call :intent :text/respond :input {:prompt "?"} :as :x
		:constraints {:max-chars 5} :done {:must #{:max-chars}} :dispatch {:candidates [:slow :quick]}}
		{:op :emit :input {:final :x}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Ashlar(app, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t, a)
	w.until("far too long, and")
	close(seen)
	w.until("run again")
	screen := w.final()
	for _, want := range []string{
		"27 tokens in, 13 out  0.5000 USD", "x/slow 1\nfar too long, and\n↻ retracted: eval/must-failed", "x/quick 1  tiny\nhi\n", "\nx\n✓ quick  ", "  2 attempts  40 tokens  0.5000 USD\n",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
}

// TestReports checks that a server's reports about a call take one line, and that many
// calls leave no speakers behind.
func TestReports(t *testing.T) {
	m := still(t, 80, 24)
	for n := range 100 {
		m.take(&piece{path: fmt.Sprintf("fix-package/call/far %d", n), from: fmt.Sprintf("fix-package/call/far %d", n), text: []byte("well")})
		m.take(reported{fmt.Sprintf("fix-package/call/far %d", n), "page 1"})
		m.take(reported{fmt.Sprintf("fix-package/call/far %d", n), "page\x1b[2J 2"})
		m.take(verdict{path: "fix-package/call", cap: "far"})
	}
	if got := m.shown(); strings.Contains(got, "page 1") || !strings.Contains(got, "call/far 99") || !strings.Contains(got, "well") || !strings.Contains(got, "2\n") {
		t.Errorf("shown:\n%s", got)
	}
	if n := len(m.transcript.speakers); n > 1 {
		t.Errorf("%d speakers are left", n)
	}
	if m.transcript.size != sizeOf(&m.transcript) {
		t.Errorf("the size is %d, want %d", m.transcript.size, sizeOf(&m.transcript))
	}
}

func sizeOf(t *transcript) (n int) {
	for _, b := range t.blocks {
		n += len(b.text)
	}
	return n
}
