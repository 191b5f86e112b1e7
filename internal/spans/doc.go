// Package spans makes spans of the events of runs, for trace files (package internal/otlp) and for runs
// that are running (module x/otel).
//
// A [Maker] decides which events start a span, end it or happened in it, what the span is called,
// which attributes it has and why it failed. An [Emitter] has the spans: it writes them, or passes
// them to an SDK. The names follow the semantic conventions for generative AI.
//
// A stream may lack events: events below a level, events of a process that died, the beginning or the
// end. So the end of an activity without its start is a span of its own, and a span without an end
// ends with the last event of its run.
package spans
