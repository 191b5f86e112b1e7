// Package trace answers questions about trace files, which package event writes and reads:
//
//   - What happened, and how often? [Command.RunTally] counts events, nearly always without decoding them.
//   - How did the run proceed? See [Command.RunLifecycle], [Lifecycle] and [FormatLifecycleLine].
//   - What exactly was sent to the model? See [Command.RunPayload], and the events of type [event.ModelRequest] in a file at level
//     debug.
package trace
