package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/trace"
)

// A run writes a trace, its process dies in the middle of a line, and the rest of the trace is still
// there.
func Example() {
	var file bytes.Buffer
	w := trace.NewWriter(&file, slog.LevelDebug)
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

	counts, total, bad := trace.Tally(bytes.NewReader(file.Bytes()))
	fmt.Println(total, "events,", counts)
	fmt.Println(bad)

	for e, err := range trace.Lifecycle(trace.Read(&file)) {
		if err != nil {
			continue // the cut line, seen above
		}
		_, line, _ := strings.Cut(trace.FormatLifecycleLine(e), " ") // without the time of day
		fmt.Println(line)
	}
	// Output:
	// 4 events, [{api-call 2} {ashlar-start 1} {failure 1}]
	// [line 5: not JSON (cut off before the end of the object)]
	// ashlar-start        fix
	// api-call            fix           turn=1 msgs=1 model=m
	// api-call            fix           turn=2 msgs=3 model=m
	// failure             fix           kind=max-turns reason="2 turns without an end"
}
