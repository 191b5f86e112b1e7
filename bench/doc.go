// Package bench holds Stone beside its peers: the same work done by Stone, by
// other Go libraries for pipelines of models and code, and by bare Go, in one
// run of go test -bench. Nothing here is a timed test; the figures are read by
// cmd/table, which prints the ratios and whether they hold.
//
// # What is measured
//
// All figures are CPU time of the process, user and system, from getrusage:
// it counts what goroutines and the garbage collector do on all cores, and
// hardly moves when the machine is busy with something else. Two figures of
// durable work are of time that passes, since they are about waiting for the
// disk and for a resumed run; they want a machine that does nothing else. Each
// figure is the median of several rounds; make bench runs five and prints the table.
//
// A row is a benchmark, its last path element is who does the work:
//
//	BenchmarkSequence/small/100/stone
//	BenchmarkSequence/small/100/floor
//	BenchmarkSequence/small/100/langchaingo
//
// A turn of an agent, an event stream and the counter of windows are measured on
// one processor, since they are held to a time and not to a multiple of the floor:
// idle processors help the garbage collector beyond what the work asks of it.
//
// # The floor
//
// The floor is what a record of the same run costs in bare Go, on one
// goroutine: write the content as canonical JSON, hash the envelope
// {"content":…,"parents":[…],"type":…} with SHA-256, keep id and content, and
// read the content back where the type of a step's input is not flat (has
// slices, maps or pointers, so that the value itself cannot be handed on). The
// encoder is the one that Stone uses, and [encoding/json] reads.
//
// The floor of a durable step is a row with a UNIQUE id and the same content, by
// the driver, with the settings and with the shared commits of journal/sqlite. It
// is one write, where a step is two: that its work begins, and its result.
//
// # The peers
//
// Every peer does the work in the way that its own documentation shows, with
// the cheapest state that it takes (mostly a pointer that it hands on unread),
// without tracing, callbacks and checkpoints. Models and tools of agents answer
// with what was made before the run. None of them keeps a record that
// could be checked afterwards; adk keeps the events of a session, genkit the
// attributes of a span, the others nothing. genkit has no row for building,
// since its flows are plain functions, and none for a fan-out, which it leaves
// to goroutines of the caller. eino and trpc-agent-go are quadratic in the
// length of a line and stay out of the long ones; the peers that start a
// goroutine for each lane stay out of the million.
//
// For durable work everybody has a store of its own. Those of adk and trpc-agent-go
// take a database: they get SQLite by the driver of Stone and with
// synchronous=FULL, adk with a dialect of ours, since those for its library need a
// C compiler or cannot be had. DBOS opens SQLite itself, with synchronous=NORMAL,
// which may lose what it acknowledged with the power. langgraphgo has no store
// without C but files, which it does not sync, and keeps the last ten of a line;
// so it has no figure for the size. DBOS alone has one for a resumed run, since it does
// as Stone does and goes through all steps again; the others go on, where they do,
// from the last state that was saved.
package bench
