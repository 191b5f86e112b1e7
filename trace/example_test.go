package trace_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"

	"github.com/stonelayer/stone/trace"
)

// A logger writes a trace, a process dies in the middle of a line, and the
// rest of the trace is still there.
func Example() {
	var file bytes.Buffer
	h := trace.NewHandler(&file, slog.LevelDebug)
	log := slog.New(h).With("ashlar-name", "fix")
	log.Debug("ashlar-start")
	log.Info("api-call", "turn-number", 1, "messages", []string{"user"})
	log.Info("api-call", "turn-number", 2, "messages", []string{"user", "assistant", "user"})
	log.Error("failure", "kind", "max-turns", "reason", "2 turns without an end")
	if err := h.Err(); err != nil {
		fmt.Println("the trace is incomplete:", err)
	}
	file.WriteString(`{"level":"debug","message":"ashlar-e`)

	counts, total, bad := trace.TallyReader(bytes.NewReader(file.Bytes()))
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
	// api-call            fix           turn=1 msgs=1
	// api-call            fix           turn=2 msgs=3
	// failure             fix           kind=max-turns reason="2 turns without an end"
}
