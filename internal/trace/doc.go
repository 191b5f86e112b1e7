// Package trace answers questions about trace files, which package event writes and reads. Each is a method of
// [Command] that prints the answer:
//
//   - What happened, and how often? [Command.RunTally] counts without decoding the events.
//   - How did the run proceed? [Lifecycle] and [FormatLifecycleLine].
//   - What exactly was sent to the model? See the events of type [event.ModelRequest] in a file at level debug.
package trace
