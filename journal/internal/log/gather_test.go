package log

import (
	"testing"
	"time"
)

// A writer that expects callers is woken by the last of them. It soon expects none that stay away.
func TestGather(t *testing.T) {
	usual := mostGathering
	defer func() { mostGathering = usual }()
	mostGathering = time.Hour
	w := &writer{wake: make(chan struct{}, 1), stop: make(chan struct{}), took: time.Hour, expected: 3}
	gathered := make(chan struct{})
	go func() { w.gather(); close(gathered) }()
	for range 3 {
		if err := w.put(&write{}); err != nil {
			t.Fatal(err)
		}
	}
	<-gathered
	if n := len(w.take()); n != 3 || w.expected != 3 || w.wanted != 0 {
		t.Errorf("gathered %d writes, then expects %d and wants %d; want 3, 3 and 0", n, w.expected, w.wanted)
	}
	w.took = 0
	for _, want := range []int{2, 1, 1} {
		if err := w.put(&write{}); err != nil {
			t.Fatal(err)
		}
		if w.gather(); len(w.take()) != 1 || w.expected != want {
			t.Errorf("after a caller came alone it expects %d, want %d", w.expected, want)
		}
	}
}
