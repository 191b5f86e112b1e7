// Package cputime measures work in tests where allocations are no measure. It compares
// processor time with a fixed piece of work in the same run, so that neither the machine
// nor its other programs decide whether a test passes.
package cputime

import (
	"crypto/sha256"
	"time"
)

// unit is the number of hashed bytes in one unit of work.
const unit = 64 << 20

var block [1 << 20]byte

// Units returns the processor time of work in units: one is the time of SHA-256 over 64
// MB, measured before and after the work. Concurrent tests in the same process count too.
func Units(work func()) float64 {
	before := calibrate()
	start := Used()
	work()
	used := Used() - start
	return 2 * float64(used) / float64(before+calibrate())
}

func calibrate() time.Duration {
	start := Used()
	for range unit / len(block) {
		_ = sha256.Sum256(block[:])
	}
	return max(Used()-start, time.Millisecond)
}
