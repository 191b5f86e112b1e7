package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/otlp"
)

func (a *app) export() *cobra.Command {
	var url string
	c := overTrace("export --otlp URL", "Send a trace to an OpenTelemetry collector", func(ctx context.Context, path string) error {
		return a.exportTrace(ctx, url, path)
	})
	c.Long = "Export sends a trace to an OpenTelemetry collector, over OTLP/HTTP, with the names of the semantic\n" +
		"conventions for generative AI. Sending a trace twice sends the same spans. Spans of ashlars and lanes\n" +
		"need a trace of level debug: set STONE_LOG_LEVEL=debug for the run.\n\n" +
		"Headers, such as an API key, are read from OTEL_EXPORTER_OTLP_TRACES_HEADERS or\n" +
		"OTEL_EXPORTER_OTLP_HEADERS: key=value,key=value with URL-encoded values. With OTEL_EXPORTER_OTLP_ENDPOINT,\n" +
		"the commands that run pipelines send their spans while they run."
	c.Example = a.example("trace export --otlp http://127.0.0.1:4318 run.jsonl")
	c.DisableFlagsInUseLine = true
	c.Flags().StringVar(&url, "otlp", "", "`URL` of the collector, such as http://127.0.0.1:4318")
	return c
}

func (a *app) exportTrace(ctx context.Context, url, path string) error {
	if url == "" {
		return errors.New("--otlp is missing: want the URL of a collector, such as http://127.0.0.1:4318")
	}
	cfg, err := otlp.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	cfg.URL, cfg.Exact = url, false
	cfg.Skipped = func(err error) {
		var bad *event.LineError
		if errors.As(err, &bad) {
			a.complain("%s:%d: %s; line skipped", path, bad.Line, bad.Reason)
		} else {
			a.complain("%v", err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return failed("trace file cannot be read: %w", err)
	}
	defer f.Close()
	report, err := otlp.Export(ctx, f, cfg)
	if err != nil && report.Sent > 0 {
		err = fmt.Errorf("%w (%d spans were sent; to export again sends them under the same ids)", err, report.Sent)
	}
	if err != nil {
		return failed("%w", err)
	}
	_, err = fmt.Fprintf(a.Stdout, "spans sent: %d\n", report.Sent)
	return output(err)
}
