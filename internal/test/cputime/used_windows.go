package cputime

import (
	"syscall"
	"time"
)

// Used returns the processor time that this process has used.
func Used() time.Duration {
	var started, ended, kernel, user syscall.Filetime
	process, err := syscall.GetCurrentProcess()
	if err == nil {
		err = syscall.GetProcessTimes(process, &started, &ended, &kernel, &user)
	}
	if err != nil {
		panic(err) // cannot fail for the process itself
	}
	ticks := func(t syscall.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) } // 1 tick is 100 ns
	return time.Duration(100 * (ticks(kernel) + ticks(user)))
}
