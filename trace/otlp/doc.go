// Package otlp sends trace files to an OpenTelemetry collector, over OTLP/HTTP
// in its JSON form:
//
//	report, err := otlp.Export(ctx, file, otlp.Config{URL: "http://127.0.0.1:4318"})
//
// # Spans
//
// A run is the root span. Below it every ashlar, lane, turn of a model, tool call
// and attempt of a call is a span, as far as the file knows of them: ashlars and
// lanes are recorded at level debug only. Every other event is an event of the
// span that it happened in, and if that is not in the file, of the nearest one
// around it that is. An event that belongs to no span becomes one of no duration,
// so nothing that the file tells is lost.
//
// A span that ended badly has the status error, with the kind of the failure
// under error.type. A span that the file leaves open, since the process died or
// still runs, ends with the last event of its run and has error.type "unfinished".
//
// The names are those of the semantic conventions for generative AI, version
// 1.41: see the constants. What they have no name for is put under "stone.", so
// "turn-number" is stone.turn_number. What models and tools were told and said, the
// events api-call-payload, api-response-payload and tool-dispatch-payload, stays
// in the file.
//
// # Ids
//
// Trace ids are hashes of run ids, span ids of the event that began the span. So
// a file that is sent twice gives the same spans, and a run that was resumed is
// one trace with a root for each time.
//
// # Bounds
//
// The file is read as a stream; what is held is the spans that are open, each with
// at most 128 events of texts up to 8 KiB, and one batch on its way.
package otlp
