// Package event defines the events of a run, as one typed stream.
//
// Package stone sends an [Event] for each run, step, lane and question; package agent for each turn of a model and each tool
// call; package call for each attempt and verdict. Everything that shows or records a run reads this stream: trace files, the
// progress display, the screen, OpenTelemetry and your own programs.
//
// # Watching
//
// A [Watcher] is given to a run in its Config:
//
//	stone.Run(ctx, pipeline, stone.Config{Watch: event.Func(slog.LevelInfo, show)})
//
// [Log] passes the stream to a [log/slog.Handler], [All] to several watchers, and [Clean] to a watcher that must not see secrets.
//
// # Order
//
// A run calls Watch synchronously and never concurrently, from the goroutine that causes the event unless the event is delayed.
// Events arrive in the order of their numbers. Seq starts at 1 and has no gaps; Time never decreases as long as the run's clock
// does not. Events of concurrent lanes interleave, but:
//
// - A start event precedes all events within its span, and the end event follows all of them.
// - A [Retracted] precedes the text that replaces the retracted text.
//
// A run with a journal delays events until all earlier records are durable, normally for at most a few milliseconds. Delayed
// events arrive from another goroutine or with the next event. Events about results that could not be recorded are dropped.
//
// A run waits for its watchers: while Watch blocks, the step that sent the event blocks, and so does every other step that sends
// an event. A slow watcher, such as one that writes to a network, must queue events and decide which to drop. It must not send
// events to the same run from within Watch.
//
// A watcher that panics does not end the run. That watcher receives no more events of the run; the other watchers receive a
// [Custom] event "watcher-panicked".
//
// # Levels
//
// Each type of [Data] has a level. A run calls Wants before it creates an event, so unwanted events cost no allocation. Pieces of
// answers have [LevelDelta], below [log/slog.LevelDebug]: logs leave them out, and model answers are streamed only if a watcher
// wants that level.
//
// Events include contents: a [ModelRequest] contains the prompt, and a [ToolDone] contains the input and the result. Logs and
// trace files include contents only at level debug.
//
// # JSON
//
// [Event.Line] returns an event as one JSON object, which is a line of a trace file, and [Event.UnmarshalJSON] reads it.
// [Event.Attrs] returns the same fields as attributes, for logs and spans.
//
//	{"event":"api-call","level":"info","seq":9,"timestamp":1760000000123.5,"trace-id":"run-7","span-id":"span-2","parent-span-id":"span-1","ashlar-name":"fix","path":"all/fix","data":{"turn-number":5,"model":"m","message-count":9}}
//
// The event's type comes first; its own fields are under "data". Times are in milliseconds since 1970, and durations are in
// milliseconds.
//
// # Trace files
//
// A [Writer] is a watcher: give it to a run, and every event becomes a line of a trace file. The Writer writes each line with one
// call, so a process that dies loses at most the line it was writing. [Append] opens a file for it.
//
// [Read] streams events from a reader of any length. Damage stays local: a line that is truncated or is not an event yields a
// [*LineError] with its number, and reading continues with the next line. The command stone trace answers questions about a file,
// and exports it to an OpenTelemetry collector.
//
// # Streamed text
//
// A model's answer arrives as a series of [Delta] events before it is accepted. The path
// of the event, Source and Attempt together identify one answer. The last delta of a
// complete answer has End set. A Retracted event declares an answer void:
//
// - The attempt failed and the model is called again ([Delta].Attempt increases).
//   - A gate rejected the answer, or another candidate of the call won.
//
// - The step failed, its attempt is retried, or a Flow canceled it.
//
// Answers that are not retracted when their step is done were accepted. Text in a lane
// that is lost later, or in a run that fails later, is not retracted.
//
// [Partials] makes a watcher that receives a JSON answer as a Go value while it arrives.
//
// # Sending
//
// Bodies of steps send their own events with the Event method of stone.In. Packages that build on stone use [At], which returns
// the [Place] of a context in its run, and [Place.Speak], which streams an answer.
//
// An [Event] is numbered by the [Stream] of its run, which [NewStream] makes; the reference page docs/reference/events.md lists
// all types. A context holds the [Sender] of its place under [Key].
package event
