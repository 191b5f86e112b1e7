// Package bench compares Stone with its peers: it measures the same work done by Stone, by other Go libraries for pipelines of
// models and code, and by plain Go, in one run of go test -bench. No test in this package depends on time. The command cmd/table
// reads the measurements, prints the ratios, and shows whether they are within their bounds.
//
// # What is measured
//
// All measurements are CPU time of the process, user and system, as reported by getrusage. This includes the work of all
// goroutines and of the garbage collector on all cores, and hardly changes when other programs keep the machine busy. Two
// measurements of durable work are elapsed time, because they measure waiting for the disk and for a resumed run; they need an
// otherwise idle machine. Each value is the median of several rounds. "make bench" runs five rounds and prints the table.
//
// Each row of the table is a benchmark. The last element of the benchmark's path is the library:
//
//	BenchmarkSequence/small/100/stone
//	BenchmarkSequence/small/100/floor
//	BenchmarkSequence/small/100/langchaingo
//
// An agent's turn, an event stream and the counter of windows are measured on one processor, because their bound is a time rather
// than a multiple of the floor, and idle processors would help the garbage collector.
//
// BenchmarkFleet measures a PostgreSQL server that may also serve other programs: its commits, the flushes and bytes of its log,
// its CPU time, and what its backends are waiting for, sampled every 20 ms. It has no bounds in the table; "make fleet" prints the
// medians. DBOS uses a separate database on the same server.
//
// # The floor
//
// The floor is the cost of recording the same run in plain Go, on one goroutine: it writes the content as canonical JSON, hashes
// the envelope {"content":…,"parents":[…],"type":…} with SHA-256, keeps ID and content, and decodes the content if the type of a
// step's input is not flat (if it has slices, maps or pointers, so that the value itself cannot be passed on). It uses the same
// encoder as Stone, and decodes with [encoding/json].
//
// The floor of a durable step is writing a row with a UNIQUE ID and the same content, with the same driver and settings and with
// shared commits, as in journal/sqlite. It is a single write, while a step consists of two: an intent before its work, and its
// result.
//
// # The peers
//
// Every peer does the work as its own documentation shows, with the cheapest state that it accepts (usually a pointer that it
// passes on without reading it), and without tracing, callbacks and checkpoints. The models and tools of agents return answers
// that were prepared before the run. None of the peers keeps a record that could be verified afterwards: adk keeps the events of a
// session, genkit keeps the attributes of a span, and the others keep nothing. There is no row for building with genkit, because
// its flows are plain functions, and none for a fan-out, because genkit expects the caller to start goroutines. The cost of eino
// and trpc-agent-go grows with the square of the number of steps, so they are omitted from long sequences. Peers that start a
// goroutine for each lane are omitted from the fan-out with a million lanes.
//
// For durable work every library uses its own store. The stores of adk and trpc-agent-go work with any database. They use SQLite
// with Stone's driver and synchronous=FULL. For adk, this package contains the SQL dialect, because the existing dialects for its
// database library need a C compiler or are not available. DBOS opens SQLite itself, with synchronous=NORMAL, which may lose
// acknowledged writes in a power failure. The only store of langgraphgo that needs no C compiler consists of files. It does not
// sync the files and keeps only the last ten of a sequence, so its size is not measured. A resumed run is measured only for DBOS,
// because DBOS repeats all steps from the record, as Stone does. The other libraries that can resume continue from the last saved
// state.
package bench
