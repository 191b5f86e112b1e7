package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	text, err := os.ReadFile("testdata/run.txt")
	if err != nil {
		t.Fatal(err)
	}
	m, err := read(bytes.NewReader(text), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	shown := []row{
		{1, "a step", "Sequence/small/100", step, "", timesFloor(1.5)},
		{1, "… is flat", "Sequence/small/100000", step, "", timesRow(1.5, "Sequence/small/100", "that of 100")},
		{1, "… without its floor", "Sequence/small/100000", step, "", timesFloor(1.5)},
		{2, "memory", "FanOut/1000000", "peak-MB", "", units(1300, "1.3 GB")},
		{4, "not measured", "Build/same/1000", ashlar, "", units(600, "0.6 µs")},
		{7, "depth", "Nearest/1000000", "cpu-ns/read", "", timesSmall(0.1)},
	}
	const want = `CPU time of the process (user and system), median of 1 to 3 repetitions, on linux, amd64, Some CPU.

#  row                    stone    floor     ratio  best peer  its figure   ratio  hold                 met        spread
1  a step               0.74 µs  0.50 µs    1.48 ×  adk           1.00 µs  0.74 ×  ≤ 1.5 × floor        yes         3.8 ×
1  … is flat            1.50 µs        –    2.03 ×  –                   –       –  ≤ 1.5 × that of 100  NO            1 ×
1  … without its floor  1.50 µs        –         –  –                   –       –  ≤ 1.5 × floor        no figure     1 ×
2  memory               1.25 GB        –         –  –                   –       –  ≤ 1.3 GB             yes           1 ×
4  not measured               –        –         –  –                   –       –  ≤ 0.6 µs             no figure       –
7  depth                49.9 ns  0.50 µs  0.0999 ×  –                   –       –  ≤ 0.1 × small step   yes        2.25 ×

3 of 6 figures meet their bounds. Spread is the largest sample over the smallest, of stone or of the floor it is
compared with: if a figure is closer to its bound than that, measure on a quieter machine.
`
	var out strings.Builder
	if err := m.print(&out, shown); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := m.missing(shown); err == nil || !strings.Contains(err.Error(), "… without its floor") {
		t.Errorf("the first row without a figure is not named: %v", err)
	}
}

func TestFailuresAreReported(t *testing.T) {
	for _, text := range []string{
		"--- FAIL: BenchmarkFanOut/1000/stone\n    fanout_test.go:57: 3 of 1000 lanes have a result\n",
		"panic: out of memory\n",
		"FAIL\tgithub.com/stonelayer/stone/internal/bench [build failed]\n",
	} {
		err := run(strings.NewReader(text), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "failed") {
			t.Errorf("%q: want an error that says what failed, got %v", text, err)
		}
	}
}

func TestBadLineIsRefused(t *testing.T) {
	for _, line := range []string{
		"BenchmarkSequence/small/100/floor-2 10 many cpu-ns/step\n",
		"BenchmarkSequence/small/100/floor-2 10 400 cpu-ns/step 5\n",
	} {
		if _, err := read(strings.NewReader(line), io.Discard); err == nil {
			t.Errorf("%q is read without an error", line)
		}
	}
}

func TestMedians(t *testing.T) {
	const in = `goos: linux
cpu: Some CPU
BenchmarkFleet/32/stone-2  1  0.5 commits/step  3000 cpu-ns/step  0 ns/op  900 per-second
BenchmarkFleet/32/stone-2  1  0.3 commits/step  1000 cpu-ns/step  0 ns/op  700 per-second
BenchmarkLanes/4/stone-2   1  0.125 commits/lane  7000 worker-cpu-ns/lane
`
	const want = `A step or a lane, medians of 1 to 2 rounds, on linux, Some CPU.

     benchmark  commits  cpu-µs  per-second  worker-cpu-µs
Fleet/32/stone  0.40          2         800              –
 Lanes/4/stone  0.12          –           –              7
`
	var out bytes.Buffer
	if err := medians(strings.NewReader(in), &out, io.Discard); err != nil || out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := medians(strings.NewReader(in+"--- FAIL: BenchmarkLanes\n"), &out, io.Discard); err == nil {
		t.Error("a failed benchmark is no error")
	}
}
