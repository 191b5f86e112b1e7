package otlp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/x/otlp"
)

// A trace is sent to a collector, which here is a server that takes everything.
func Example() {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()

	var file strings.Builder
	w := event.NewWriter(&file, nil)
	for i, data := range []event.Data{event.RunStarted{}, event.ToolDone{ToolCall: event.ToolCall{Tool: "read_file"}, OK: true}, event.RunEnded{OK: true}} {
		w.Watch(context.Background(), event.Event{Run: "run-7", Span: "span-1", Name: "fix", Seq: uint64(i + 1), Time: time.Unix(1760000000, int64(i)), Data: data})
	}

	report, err := otlp.Export(context.Background(), strings.NewReader(file.String()), otlp.Config{URL: collector.URL})
	fmt.Printf("%d spans sent, %d rejected, %v\n", report.Sent, report.Rejected, err)
	// Output: 2 spans sent, 0 rejected, <nil>
}
