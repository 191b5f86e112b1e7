// Package otlp sends the spans of runs to an OpenTelemetry collector over OTLP/HTTP, in protobuf or JSON. The spans are created
// from trace files or from running runs.
//
//	report, err := otlp.Export(ctx, file, otlp.Config{URL: "http://127.0.0.1:4318"})
//	live, err := otlp.NewLive(otlp.Config{URL: "http://127.0.0.1:4318"}, say)
//
// The following part adds the option --as otlp of the command export to a program, and lets the program send the spans of its
// runs:
//
//	func main() { cli.Main(Pipeline, otlp.Part) }
//
// # Spans
//
// A run is the root span. Below it there is a span for every ashlar, lane, model turn, tool call and attempt of a call that the
// file contains (ashlars and lanes are recorded only at level debug). Every other event becomes an event of the span that it
// belongs to or, if that span is not in the file, of the nearest enclosing span. An event without any span becomes a span with no
// duration, so nothing in the file is lost.
//
// A failed span has the status error, and the failure's kind as error.type. A span without an end, because the process died or is
// still running, ends with the last event of its run and has the error.type "unfinished".
//
// The names follow the semantic conventions for generative AI, version 1.41. Fields without a conventional name are put under
// "stone.", so "turn-number" is stone.turn_number. Prompts, answers, and the inputs and results of tools are sent only if
// Config.Messages is set. Module x/otel creates the same spans with the OpenTelemetry SDK.
//
// # Ids
//
// Trace ids are hashes of run ids, and span ids are hashes of a span's first event. Sending a file twice yields the same spans. A
// resumed run is one trace with a root span for each process.
//
// # Bounds
//
// The file is read as a stream. Only the open spans are kept in memory, each with at most 128 events whose texts are at most 8 KiB
// long, together with the batch that is being sent. A Live has a memory limit, beyond which it drops spans with their events, so
// that a run never waits for a collector.
package otlp
