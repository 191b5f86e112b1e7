// Package trace writes and reads trace files: the events of a run, one JSON object a line, as
// [event.Event.Line] makes it.
//
//	{"event":"api-call","level":"info","seq":9,"timestamp":1760000000123.5,"trace-id":"run-7","span-id":"span-2","parent-span-id":"span-1","ashlar-name":"fix","path":"all/fix","data":{"turn-number":5,"model":"m","message-count":9}}
//
// The type of the event comes first, its own fields are under "data". Times are in milliseconds since
// 1970, durations in milliseconds.
//
// # Writing
//
// A [Writer] is a watcher: give it to a run, and every event becomes a line. It writes each line with
// one call, so a process that dies loses at most the line it was writing. [Append] opens a file for
// it.
//
// # Reading
//
// [Read] streams events from a reader, however long it is. Damage stays local: a line that is
// truncated or is not an event yields a [*LineError] with its number, and reading continues with the
// next line.
//
// Three questions cover most investigations. Each is a method of [Command] that prints the answer:
//
//   - What happened, and how often? [Tally] counts without decoding the events.
//   - How did the run proceed? [Lifecycle] and [FormatLifecycleLine].
//   - What exactly was the model sent? The events of type [event.ModelRequest] in a file of level
//     debug.
//
// The command stone trace export sends a trace to an OpenTelemetry collector.
package trace
