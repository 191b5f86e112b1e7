// Package journal holds recorders of runs. A run that is given one has every
// leaf, every decision and every Step recorded, and a later run with the same
// RunID does none of that again:
//
//	var memory journal.Memory
//	result, err := stone.Run(ctx, pipeline, stone.Config{RunID: "nightly", Recorder: &memory})
//
// [Memory] keeps the records as long as the process lives, journal/sqlite in a
// file. Package journaltest tests any recorder.
package journal
