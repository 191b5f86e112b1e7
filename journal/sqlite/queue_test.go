package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Writers come in turn. A writer that has waited too long continues without its turn, and blocks no other writer when its turn
// comes later.
func TestQueue(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var first, second queue
	defer func() {
		if first.close() != nil || second.close() != nil {
			t.Error("the queue cannot be closed")
		}
	}()
	if !first.enter(log, time.Minute) {
		t.Fatal("nobody writes, and it is not the first one's turn")
	}
	if second.enter(log, time.Millisecond) {
		t.Fatal("two write at once")
	}
	missed := second.wait.missed
	first.leave()
	<-missed
	if !first.enter(log, time.Minute) {
		t.Fatal("the turn of the second one, which it did not wait for, keeps the first one from writing")
	}
	entered := make(chan bool)
	go func() { entered <- second.enter(log, time.Minute) }()
	select {
	case <-entered:
		t.Fatal("two write at once")
	case <-time.After(10 * time.Millisecond):
	}
	first.leave()
	if !<-entered {
		t.Error("the second one waited, and its turn did not come")
	}
	second.leave()
	var none queue
	if none.enter(filepath.Join(t.TempDir(), "none"), time.Minute) {
		t.Error("a queue without a log has turns")
	}
}
