// Package spans converts the events of runs to spans. Package x/otlp writes the spans to trace files, and module x/otel passes
// the spans of running runs to OpenTelemetry.
//
// A [Maker] decides which events start a span, end it or happened during it, and determines the span's name, its attributes and
// why it failed. An [Emitter] receives the spans and writes them or passes them to an SDK. The names follow the semantic
// conventions for generative AI.
//
// Events may be missing from a stream: events below a level, events of a process that died, or the beginning or end of the
// stream. If the start of an activity is missing, the event of its end therefore becomes a span of its own. If the end is
// missing, the span ends with the last event of its run.
package spans
