package event_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/eventtest"
)

type secret string

func (s secret) Clean(text string) string { return strings.ReplaceAll(text, string(s), "[hidden]") }
func (s secret) CleanCut(text string) string {
	open := s.Open(text)
	return s.Clean(text[:len(text)-open]) + strings.Repeat("*", open)
}
func (s secret) Open(text string) int {
	for n := min(len(s)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, string(s[:n])) {
			return n
		}
	}
	return 0
}

// TestClean checks that no text of any type of data gets past a cleaner.
func TestClean(t *testing.T) {
	var r eventtest.Recorder
	w := event.Clean(&r, secret("SECRET"))
	all := eventtest.All()
	for i, d := range all {
		w.Watch(t.Context(), event.Event{Run: "r", Seq: uint64(i + 1), Data: d})
	}
	types := map[string]bool{}
	for i, e := range r.Events() {
		types[fmt.Sprintf("%T", e.Data)] = true
		text := fmt.Sprintf("%+v", e.Data)
		if raw, err := json.Marshal(e.Data); err == nil {
			text += string(raw)
		}
		if strings.Contains(text, "SECRET") {
			t.Errorf("a secret in %s", text)
		}
		if e.Seq != uint64(i+1) {
			t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
	}
	if len(types) != len(all) {
		t.Errorf("%d types arrived of %d", len(types), len(all))
	}
	if got := fmt.Sprint(all); !strings.Contains(got, "SECRET") {
		t.Error("the original event was changed")
	}
}

// TestCleanDeltas checks that a secret is found wherever a text is cut, that all other
// text arrives, and that the stream stays valid.
func TestCleanDeltas(t *testing.T) {
	const text = "the ключ is SECRET, I say SECRET, SEC and RET"
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		var r eventtest.Recorder
		ctx := eventtest.Context(t.Context(), event.Clean(&r, secret("SECRET")))
		v := event.At(ctx).Speak("m")
		for rest := text; rest != ""; {
			n := 1 + random.IntN(min(len(rest), 9))
			v.Say(event.Text, rest[:n])
			rest = rest[n:]
		}
		v.End()
		said := ""
		for _, e := range r.Events() {
			said += e.Data.(event.Delta).Text
		}
		if want := secret("SECRET").Clean(text); said != want {
			t.Fatalf("seed %d: said %q, want %q", seed, said, want)
		}
		if err := eventtest.Check(r.Events()); err != nil {
			t.Fatal(err)
		}
	}
}
