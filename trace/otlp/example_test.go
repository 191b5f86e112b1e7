package otlp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/stonelayer/stone/trace"
	"github.com/stonelayer/stone/trace/otlp"
)

// A trace is sent to a collector, which here is a server that takes everything.
func Example() {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()

	var file strings.Builder
	log := slog.New(trace.NewHandler(&file, nil)).With("trace-id", "run-7", "span-id", "span-1")
	log.Info("run-start", "ashlar-name", "fix")
	log.Info("tool-dispatch", "tool-name", "read_file", "elapsed", 12.5)
	log.Info("run-end", "ok", true)

	report, err := otlp.Export(context.Background(), strings.NewReader(file.String()), otlp.Config{URL: collector.URL})
	fmt.Printf("%d spans sent, %d rejected, %v\n", report.Sent, report.Rejected, err)
	// Output: 2 spans sent, 0 rejected, <nil>
}
