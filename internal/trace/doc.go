// Package trace answers questions about trace files, which package event writes and reads. Each is a method of
// [Command] that prints the answer:
//
//   - What happened, and how often? [Command.RunTally] counts without decoding the events.
//   - How did the run proceed? [Lifecycle] and [FormatLifecycleLine].
//   - What exactly was the model sent? The events of type [event.ModelRequest] in a file of level
//     debug.
package trace
