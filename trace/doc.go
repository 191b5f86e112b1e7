// Package trace writes and reads trace files: the events of a run, one JSON
// object a line.
//
//	{"level":"info","message":"api-call","topic":"stone","data":{"event":"api-call","timestamp":1760000000123.5,"trace-id":"run-7","span-id":"span-2","parent-span-id":"span-1","ashlar-name":"fix","turn-number":5}}
//
// The level is one of debug, info, warning, error and fatal. The data has the event's
// type under "event", its time under "timestamp" (milliseconds since 1970, fractions
// allowed), the ids that place the event in the tree of spans, and the fields of that
// type of event.
//
// # Writing
//
// A [Handler] is a [log/slog.Handler]: give it to a run, and every event
// becomes a line. It writes each line with one call, so a process that dies
// loses at most the line it was writing. [Append] opens a file for it.
//
// # Reading
//
// [Read] streams events from a reader, however long it is. Damage stays local: a line
// that is truncated or is not a JSON object yields a [*LineError] with its number, and
// reading continues with the next line. [Load] reads a whole file into memory.
//
// Three questions cover most investigations. Each is a function over events, and a method
// of [Command] that prints the answer:
//
//   - What happened, and how often? [Tally]; [TallyReader] gives the same
//     counts straight from the bytes, many times faster.
//   - How did the run proceed? [Lifecycle] and [FormatLifecycleLine].
//   - What exactly was the model sent? [Payloads].
//
// Package trace/otlp sends a trace to an OpenTelemetry collector.
package trace
