package eventtest_test

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/eventtest"
)

// TestCheck checks that streams that break a promise are detected.
func TestCheck(t *testing.T) {
	say := func(attempt int, text string) event.Delta {
		return event.Delta{Source: "m", Attempt: attempt, Text: text}
	}
	for want, data := range map[string][]event.Data{
		"":                           {event.StepStarted{Form: "leaf"}, say(1, "a"), event.Retracted{Source: "m", Attempt: 1}, say(2, "b"), event.StepDone{Form: "leaf", OK: true}},
		"has no end":                 {event.StepStarted{Form: "leaf"}},
		"it has not started":         {event.StepDone{Form: "leaf"}},
		"it has started already":     {event.RunStarted{}, event.RunStarted{}, event.RunEnded{}},
		"attempt 1 of m is not":      {say(1, "a"), say(2, "b")},
		"answer of m is retracted":   {say(1, "a"), event.Retracted{Source: "m", Attempt: 1}, say(1, "b")},
		"answer of m has ended":      {say(1, "a"), event.Delta{Source: "m", Attempt: 1, End: true}, say(1, "b")},
		"nothing is retracted":       {event.Retracted{Source: "m", Attempt: 1}},
		"attempt 1 of m at p is not": {say(1, "a"), event.AttemptFailed{Attempt: 1}},
	} {
		var events []event.Event
		for i, d := range data {
			events = append(events, event.Event{Run: "r", Seq: uint64(i + 1), Path: "p", Span: "s", Data: d})
		}
		err := eventtest.Check(events)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	two := []event.Event{{Run: "r", Seq: 1, Data: say(1, "a")}, {Run: "q", Seq: 3, Data: say(1, "a")}}
	if err := eventtest.Check(two); err == nil || !strings.Contains(err.Error(), "number 3") || !strings.Contains(err.Error(), `run "q"`) {
		t.Errorf("got %v", err)
	}
}
