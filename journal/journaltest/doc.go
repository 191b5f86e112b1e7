// Package journaltest tests implementations of stone.Recorder, as package
// testing/slogtest does for handlers:
//
//	func TestRecorder(t *testing.T) {
//		journaltest.TestRecorder(t, func() stone.Recorder { return new(journal.Memory) })
//	}
package journaltest
