// Package journaltest tests implementations of journal.Journal, and of step.Recorder
// alone, as package testing/slogtest does for handlers:
//
//	func TestJournal(t *testing.T) {
//		journaltest.TestJournal(t, func() func() journal.Journal {
//			file := filepath.Join(t.TempDir(), "stone.db")
//			return func() journal.Journal { return open(t, file) }
//		})
//	}
//
// Every part of the test opens a new store, and often two journals over it, like two
// processes.
package journaltest
