package event_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"

	"github.com/stonelayer/stone/event"
)

// A run writes a trace, and its process dies in the middle of a line. All other lines of the trace can still be read.
func ExampleWriter() {
	var file bytes.Buffer
	w := event.NewWriter(&file, slog.LevelDebug)
	for _, data := range []event.Data{
		event.StepStarted{Form: "leaf"},
		event.ModelRequest{Turn: 1, Model: "m", MessageCount: 1},
		event.ModelRequest{Turn: 2, Model: "m", MessageCount: 3},
		event.StepFailed{Kind: "max-turns", Reason: "2 turns without an end"},
	} {
		w.Watch(context.Background(), event.Event{Name: "fix", Data: data})
	}
	if err := w.Err(); err != nil {
		fmt.Println("the trace is incomplete:", err)
	}
	file.WriteString(`{"event":"ashlar-end","lev`)

	for e, err := range event.Read(&file) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(e.Name, e.Type())
	}
	// Output:
	// fix ashlar-start
	// fix api-call
	// fix api-call
	// fix failure
	// line 5: not JSON (cut off before the end of the object)
}
