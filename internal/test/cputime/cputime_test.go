//go:build unix

package cputime

import (
	"crypto/sha256"
	"testing"
	"time"
)

func TestUnits(t *testing.T) {
	if idle := Units(func() { time.Sleep(200 * time.Millisecond) }); idle > 0.5 {
		t.Errorf("sleeping took %.2f units", idle)
	}
	var sum [sha256.Size]byte
	busy := Units(func() {
		for range 3 * unit / len(block) {
			sum = sha256.Sum256(block[:])
		}
	})
	if busy < 1 || busy > 9 {
		t.Errorf("three times the unit took %.2f units (%x)", busy, sum[:2])
	}
}
