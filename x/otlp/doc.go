// Package otlp sends spans of runs to an OpenTelemetry collector, over OTLP/HTTP in protobuf or JSON. The runs are read from
// trace files, or are still running.
//
//	report, err := otlp.Export(ctx, file, otlp.Config{URL: "http://127.0.0.1:4318"})
//	live, err := otlp.NewLive(otlp.Config{URL: "http://127.0.0.1:4318"}, say)
//
// A program with cli.Main sends the spans of its runs, and has export --as otlp, with this part:
//
//	func main() { cli.Main(Pipeline, otlp.Part) }
//
// # Spans
//
// A run is the root span. Below it, every ashlar, lane, model turn, tool call and attempt of a call is a span, as far as the file
// contains them: ashlars and lanes are recorded at level debug only. Every other event is an event of the span to which it
// belongs or, if that is not in the file, of the nearest span around it. An event without any span becomes a span with no
// duration, so nothing in the file is lost.
//
// A span that failed has the status error, with the kind of the failure under error.type. A span without an end, because the
// process died or still runs, ends with its run's last event and has error.type "unfinished".
//
// The names follow the semantic conventions for generative AI, version 1.41. Fields without a conventional name are put under
// "stone.", so "turn-number" is stone.turn_number. Prompts, answers, and inputs and results of tools are sent only if
// Config.Messages is set. Module x/otel creates the same spans with the OpenTelemetry SDK.
//
// # Ids
//
// Trace ids are hashes of run ids, and span ids are hashes of a span's first event. A file that is sent twice yields the same
// spans, and a resumed run is one trace with a root for each process.
//
// # Bounds
//
// The file is read as a stream. Only the open spans are in memory, each with at most 128 events of texts up to 8 KiB, and one
// batch that is being sent. A Live has a memory limit, beyond which it drops spans with their events: a run never waits for a
// collector.
package otlp
