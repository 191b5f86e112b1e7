// Package spans converts the events of runs to spans, for trace files (package x/otlp) and for running runs (module
// x/otel).
//
// A [Maker] decides which events start a span, end it or happened during it, and determines the span's name, its attributes and
// why it failed. An [Emitter] receives the spans and writes them or passes them to an SDK. The names follow the semantic
// conventions for generative AI.
//
// Events may be missing from a stream: events below a level, events of a process that died, or the beginning or end of the stream.
// Therefore, if an activity's start is missing, its end becomes a span of its own, and a span without an end ends with the last
// event of its run.
package spans
