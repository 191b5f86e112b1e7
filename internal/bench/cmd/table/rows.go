package main

// A row is a measurement of Stone that has a bound. It has the number of the corresponding row in the design document's table.
type row struct {
	number int
	title  string
	path   string // path of the benchmark, without its last element (the library)
	unit   string
	beside string // path of the floor and the peers, if different from path
	hold   hold
}

// A hold is the bound of a row: a number of units, or a multiple of another measurement.
type hold struct {
	atMost float64
	of     string // "" for units, or floor, smallStep, eventOf1KB or the path of another of Stone's rows
	words  string
}

const (
	step   = "cpu-ns/step"
	lane   = "cpu-ns/lane"
	turn   = "cpu-ns/turn"
	ashlar = "cpu-ns/ashlar"
	octet  = "cpu-ns/byte"
	passes = "elapsed-ns/step"
	called = "cpu-ns/call"

	floor = "floor" // the same work in plain Go

	// The floors used for measurements that have no floor of their own.
	smallStep  = "Sequence/small/100/floor"
	eventOf1KB = "Sequence/1KB-nested/100/floor"
)

// Where the design requires "flat", the bound is 1.5 times, as the design specifies for the fan-out with a million lanes.
var rows = []row{
	{1, "sequential step, small, 100 steps", "Sequence/small/100", step, "", timesFloor(1.5)},
	{1, "sequential step, small, 100,000 steps", "Sequence/small/100000", step, "", timesFloor(1.5)},
	{1, "… is flat: 100,000 against 100", "Sequence/small/100000", step, "", timesRow(1.5, "Sequence/small/100", "that of 100")},
	{1, "sequential step, 1 KB, 100 steps", "Sequence/1KB/100", step, "", timesFloor(1.5)},
	{1, "sequential step, 1 KB, 100,000 steps", "Sequence/1KB/100000", step, "", timesFloor(1.5)},
	{1, "… is flat: 100,000 against 100", "Sequence/1KB/100000", step, "", timesRow(1.5, "Sequence/1KB/100", "that of 100")},
	{1, "… that is read from its JSON, 100", "Sequence/1KB-nested/100", step, "", timesFloor(1.5)},
	{1, "… that is read from its JSON, 100,000", "Sequence/1KB-nested/100000", step, "", timesFloor(1.5)},

	{2, "fan-out lane, 1,000 lanes", "FanOut/1000", lane, "", timesFloor(2.5)},
	{2, "fan-out lane, 10,000 lanes", "FanOut/10000", lane, "", timesFloor(2.5)},
	{2, "fan-out lane, 1,000,000 lanes", "FanOut/1000000", lane, "", timesFloor(2.5)},
	{2, "… is flat: 1,000,000 against 10,000", "FanOut/1000000", lane, "", timesRow(1.5, "FanOut/10000", "that of 10,000")},
	{2, "… peak memory of 1,000,000", "FanOut/1000000", "peak-MB", "", units(1300, "1.3 GB")},

	{3, "agent turn with one tool call, ten in a run", "Turn/10", turn, "", timesSmall(10)},
	{3, "… one in a run, with its last turn", "Turn/1", turn, "", timesSmall(20)},

	{4, "build and validate, 1,000 ashlars", "Build/same/1000", ashlar, "", timesSmall(1)},
	{4, "build and validate, 100,000 ashlars", "Build/same/100000", ashlar, "", timesSmall(1)},
	{4, "… is flat: 100,000 against 1,000", "Build/same/100000", ashlar, "", timesRow(1.5, "Build/same/1000", "that of 1,000")},
	{4, "… with schema checks, 1,000", "Build/schemas/1000", ashlar, "Build/same/1000", timesSmall(1.6)},
	{4, "… with schema checks, 100,000", "Build/schemas/100000", ashlar, "Build/same/100000", timesSmall(1.6)},
	{4, "… is flat: 100,000 against 1,000", "Build/schemas/100000", ashlar, "Build/same/100000", timesRow(1.5, "Build/schemas/1000", "that of 1,000")},

	{5, "durable step, 32 at once, 1 KB", "Durable/0", step, "", timesFloor(1.5)},
	{5, "… in a file with 100,000 steps", "Durable/100000", step, "", timesFloor(1.5)},
	{5, "… is flat: after 100,000 against a new file", "Durable/100000", step, "", timesRow(1.5, "Durable/0", "that of a new file")},
	{5, "… time that passes", "Durable/0", passes, "", units(100_000, "100 µs, 10,000/s")},
	{5, "… bytes of file beyond its content", "Durable/0", "file-B/step", "", units(1024, "1 KB")},

	{6, "resume of 100,000 steps, time that passes", "Resume/100000", "elapsed-s/resume", "", units(1, "1 s")},
	{6, "resume of 10,000 steps of 1 KB, CPU time", "Resume/10000", step, "", hold{1.7, eventOf1KB, "≤ 1.7 × floor of 1 KB"}},

	{7, "nearest ancestor at depth 1,000,000", "Nearest/1000000", "cpu-ns/read", "", timesSmall(0.1)},

	{8, "call with schemas, checks and a gate", "Call", called, "", timesSmall(16)},
	{8, "plan of 1,000 calls, read, checked, compiled", "Plan", "cpu-ns/plan", "", hold{17 * 1000, smallStep, "≤ 17 × small step a node"}},

	{9, "stream parse with both detectors, openai", "Stream/openai", octet, "", units(10, "10 ns, 100 MB/s")},
	{9, "… anthropic", "Stream/anthropic", octet, "", units(10, "10 ns, 100 MB/s")},
	{9, "counter of windows, an answer at once", "NGram/whole", octet, "", units(8, "8 ns")},
	{9, "… word by word", "NGram/words", octet, "", units(8, "8 ns")},

	{11, "allocations a step: handler that wants nothing", "Observability/handler", "allocs/step", "", units(0, "0")},
	{11, "… unwanted event", "Observability/event", "allocs/step", "", units(0, "0")},
}

func units(n float64, words string) hold { return hold{atMost: n, words: "≤ " + words} }

// timesSmall returns the bound of a measurement that has no floor of its own. Because machines differ, the bound is a multiple of
// the floor of a small step, measured in the same run.
func timesSmall(n float64) hold { return hold{n, smallStep, "≤ " + times(n) + " small step"} }

func timesFloor(n float64) hold { return hold{n, floor, "≤ " + times(n) + " floor"} }

func timesRow(n float64, path, name string) hold {
	return hold{n, path, "≤ " + times(n) + " " + name}
}
