// Package bench compares Stone with its peers: the same work done by Stone, by other Go
// libraries for pipelines of models and code, and by bare Go, in one run of go test
// -bench. No test here depends on time; cmd/table reads the figures and prints the ratios
// and whether they meet their bounds.
//
// # What is measured
//
// All figures are CPU time of the process, user and system, from getrusage. It counts the
// work of goroutines and of the garbage collector on all cores, and hardly changes when
// the machine is busy with other programs. Two figures of durable work are elapsed time,
// since they measure waiting for the disk and for a resumed run; they need an otherwise
// idle machine. Each figure is the median of several rounds; make bench runs five and
// prints the table.
//
// A row is a benchmark, its last path element the library:
//
//	BenchmarkSequence/small/100/stone
//	BenchmarkSequence/small/100/floor
//	BenchmarkSequence/small/100/langchaingo
//
// A turn of an agent, an event stream and the counter of windows are measured on one
// processor, since their bound is a time and not a multiple of the floor: idle processors
// would help the garbage collector.
//
// BenchmarkFleet measures a PostgreSQL server that others may share with Stone: commits, flushes
// and bytes of its log, its CPU time, and what its backends wait for, from one sample each 20 ms. It has no bounds
// in the table; make fleet prints its medians. DBOS has the same server, in a database of its own.
//
// # The floor
//
// The floor is the cost of a record of the same run in bare Go, on one goroutine: write
// the content as canonical JSON, hash the envelope {"content":…,"parents":[…],"type":…}
// with SHA-256, keep id and content, and read the content back where the type of a step's
// input is not flat (has slices, maps or pointers, so that the value itself cannot be
// passed on). The encoder is the one that Stone uses, and [encoding/json] decodes.
//
// The floor of a durable step is a row with a UNIQUE id and the same content, with the
// driver, the settings and the shared commits of journal/sqlite. It is one write, where a
// step is two: an intent before its work, and its result.
//
// # The peers
//
// Every peer does the work as its own documentation shows, with the cheapest state that
// it accepts (usually a pointer that it passes on unread), without tracing, callbacks and
// checkpoints. Models and tools of agents return answers that were made before the run.
// None of the peers keeps a record that could be checked afterwards: adk keeps the events
// of a session, genkit the attributes of a span, the others nothing. genkit has no row
// for building, since its flows are plain functions, and none for a fan-out, which it
// leaves to goroutines of the caller. eino and trpc-agent-go are quadratic in the length
// of a line and are left out of the long ones; the peers that start a goroutine for each
// lane are left out of the million.
//
// For durable work every library uses its own store. Those of adk and trpc-agent-go take
// a database. They get SQLite with the driver of Stone and synchronous=FULL; adk with a
// dialect written here, since the dialects for its library need a C compiler or are not
// available. DBOS opens SQLite itself, with synchronous=NORMAL, which may lose
// acknowledged writes on a power loss. langgraphgo's only store without C is files. It
// does not sync them and keeps the last ten of a line, so it has no figure for the size.
// Only DBOS has a figure for a resumed run, since it repeats all steps from the record
// like Stone. The other libraries that can resume continue from the last saved state.
package bench
