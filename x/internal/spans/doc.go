// Package spans turns the events of runs into spans, for trace files (package x/otlp) and for running runs (module
// x/otel).
//
// A [Maker] decides which events start a span, end it or happened in it, what the span is called, which attributes it has and why
// it failed. An [Emitter] receives the spans: it writes them, or passes them to an SDK. The names follow the semantic conventions
// for generative AI.
//
// A stream may lack events: events below a level, events of a process that died, the beginning or the
// end. So the end of an activity without its start is a span of its own, and a span without an end
// ends with the last event of its run.
package spans
