package bench

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// leastRuns is the minimum number of repetitions for one figure: a single long run
// measures fresh pages as much as the work.
const leastRuns = 3

// measure repeats work and reports the CPU time of the process for each of the
// units of one repetition, under the name cpu-ns/unit.
func measure(b *testing.B, units int, unit string, work func() error) {
	b.Helper()
	runtime.GC() // garbage of the previous benchmark does not count
	runs := 0
	before := cpuTime(b)
	once := func() {
		if err := work(); err != nil {
			b.Fatal(err)
		}
		runs++
	}
	for b.Loop() {
		once()
	}
	for runs < leastRuns {
		once()
	}
	spent := cpuTime(b) - before
	b.ReportMetric(float64(spent)/float64(runs)/float64(units), "cpu-ns/"+unit)
	b.ReportMetric(0, "ns/op") // elapsed time is meaningless on a shared machine
}

// cpuTime returns user and system time of the process so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory runs work once and reports the process's peak resident memory meanwhile as peak-MB. Only Linux can reset an earlier
// peak; other systems report nothing.
func peakMemory(b *testing.B, work func() error) {
	b.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Logf("no peak memory: the system cannot reset it: %v", err)
		return
	}
	if err := work(); err != nil {
		b.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	peak, _, _ = strings.Cut(peak, "kB")
	kB, err := strconv.ParseFloat(strings.TrimSpace(peak), 64)
	if err != nil {
		b.Fatalf("no VmHWM in /proc/self/status: %v", err)
	}
	b.ReportMetric(kB*1024/1e6, "peak-MB")
}
