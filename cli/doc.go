// Package cli is the command line of Stone, for one pipeline or for any.
//
// A program gives its pipeline to [Main] and has the whole command:
//
//	func main() { cli.Main(Pipeline) }
//
//	$ ./prog run --dag run.jsonl -- --dir .
//	$ ./prog validate
//
// The command stone, cmd/stone, is the same with a PIPELINE argument, which
// names the Go package whose Pipeline is meant: stone run ./examples/audit. Or it
// names a plan, which begins with what --bind says: stone run plan.edn --bind x=1.
//
// At a terminal, without a command, both run their pipeline on the whole of the
// screen, a program if it imports package cli/screen; stone finds the pipeline in the
// nearest directory .stone. Its settings.json says
// where the pipeline is and which model [DefaultModel] is, see package
// internal/config.
//
// What follows "--" belongs to the pipeline. Results go to standard output,
// everything else to standard error. The exit code is 0 when all is done, 1 when
// the run failed, was ended before its end, or the pipeline is invalid, 2 for wrong
// usage or configuration, 3 when the run waits for an answer. Validate, trace and
// install-skill know 0 and 1 only; leaving the screen is 0 unless a run was under
// way.
//
// # Calls
//
// Who answers the calls of a plan, of a request and of a pipeline with [Applicator]
// stands in .stone/stone.edn or stone.json, in the nearest directory .stone, or in
// the file that --config names: see package internal/config. A program links the kinds
// of capabilities that it imports: call/cel, call/mcp, call/sat and call/uci, or all of
// them and the screen with package cli/all. A configuration that names another kind is
// refused with the import to add.
//
//	$ stone config check         # every fault, with its place
//	$ stone caps                 # who there is, who is up, what it costs
//	$ stone act request.edn      # the envelope of a request in, of a response out
//	$ stone explain plan.edn     # who would be asked, and by which rules
//
// What a run may do and spend stands there too, or in --grant, --max-usd and the
// like. Without that, plans and requests may do nothing to the world.
//
// # Runs that are kept
//
// What run and the screen do is kept in .stone/stone.db, in the nearest directory
// .stone or a new one in the working directory: see package journal. With it goes
// the command line, so that resume makes the pipeline again, in the directory where
// it was started.
//
//	$ ./prog run                 # says the name of the run, and ends early
//	$ ./prog resume last         # goes on: what was done is not done again
//	$ ./prog runs                # lists runs; runs gc removes old ones
//	$ ./prog show last           # steps, times, tokens, cost, what is asked
//	$ ./prog answer last NAME TEXT
//	$ ./prog diff RUN RUN        # which steps differ, and why
//
// A question that nobody answers on standard input waits, and so does its run, with
// the commands to type on standard error.
//
// # Signals
//
// The first Ctrl-C, or SIGHUP, cancels a run: the running steps are told to end,
// the DAG so far is written where it was asked for. SIGTERM is gentler with a run
// that is kept: no new step starts, those under way may take --grace to
// come to their end, and are recorded. The second signal of a sort ends the process
// at once, a second SIGTERM if it comes a second or more after the first.
package cli
