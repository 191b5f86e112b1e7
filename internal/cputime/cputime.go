//go:build unix

// Package cputime measures work in tests where allocations do not tell: processor
// time against that of a known work in the same run, so that neither the machine nor
// what else runs on it decides whether a test passes.
package cputime

import (
	"crypto/sha256"
	"syscall"
	"time"
)

// Used returns the processor time that this process has used.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// unit is how many bytes are hashed in one unit of work.
const unit = 64 << 20

var block [1 << 20]byte

// Units returns the processor time of work in units: one is what SHA-256 of 64 MB
// takes, as measured before and after the work. Tests that run at the same time in
// the same process count too.
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
