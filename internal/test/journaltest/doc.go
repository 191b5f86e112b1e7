// Package journaltest tests implementations of journal.Journal, and implementations of only step.Recorder, in the same way as
// package testing/slogtest tests handlers:
//
//	func TestJournal(t *testing.T) {
//		journaltest.TestJournal(t, func() func() journal.Journal {
//			file := filepath.Join(t.TempDir(), "stone.db")
//			return func() journal.Journal { return open(t, file) }
//		})
//	}
//
// Every part of the test opens a new store, and often two journals on the same store, like two processes.
package journaltest
