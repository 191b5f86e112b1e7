// Package cputime measures work in tests in which allocations are not a suitable measure. It compares the processor time with that
// of a fixed piece of work in the same run, so that whether a test passes does not depend on the machine or on other programs.
package cputime

import (
	"crypto/sha256"
	"time"
)

// unit is the number of bytes to hash for one unit of work.
const unit = 64 << 20

var block [1 << 20]byte

// Units returns the processor time that work takes, in units. One unit is the time that SHA-256 takes for 64 MB, measured before
// and after the work. The time includes concurrent tests in the same process.
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
