// Package cli is the command line of Stone, for one pipeline or for any pipeline.
//
// A program passes its pipeline to [Main] and gets the complete command:
//
//	func main() { cli.Main(Pipeline) }
//
//	$ ./prog run --dag run.jsonl -- --dir .
//	$ ./prog validate
//
// The command stone, in cmd/stone, is the same command with a PIPELINE argument: a Go package that exports Pipeline, as in stone
// run ./examples/audit, or a plan, as in stone run plan.edn --bind x=1.
//
// Without a sub-command, both show their pipeline on the whole screen of a terminal. A program needs the part screen.Part for
// that; see [Part]. The command stone finds the pipeline in the nearest directory .stone, whose settings.json names the pipeline
// and the model of [DefaultModel]; see package cli/internal/config.
//
// Help prints the commands in groups: they run, look, check, serve, evaluate or configure. Their texts are in commands.txt.
//
// Arguments after "--" belong to the pipeline. Results go to standard output, everything else to standard error. Exit codes: 0
// done; 1 the run failed or was interrupted, the pipeline is invalid, or the database is unavailable; 2 wrong usage or
// configuration; 3 the run is waiting for an answer. Eval with a gate also uses 4, the gate failed, and 5, there are too few
// cases to tell. Validate, trace and install-skill return only 0 and 1. Leaving the screen returns 0 unless a run was active.
//
// # Calls
//
// The capabilities that answer calls are configured in .stone/stone.edn or stone.json, in the nearest directory .stone, or in the
// file that --config names; see package internal/config. This applies to plans, requests, and pipelines that use [Applicator]. A
// program supports the capability kinds that its main function names, such as cel.Part and mcp.Part, or all of them with
// all.Parts, from package cli/all. If a configuration names another kind, the error names the part to add. A capability of kind
// go is a package's pipeline: the command stone links it, and other programs [Provide] it.
//
//	$ stone config check         # every fault, with its place
//	$ stone model caps           # the capabilities, their state and their price
//	$ stone act request.edn      # reads a request envelope, prints a response envelope
//	$ stone explain plan.edn     # the candidates of each call, and the rules
//
// The configuration, or flags such as --grant and --max-usd, also set a run's effects and budget. By default, plans and requests
// have no effects.
//
// # Recorded runs
//
// The command run and the screen record runs in .stone/stone.db, in the nearest directory
// .stone or a new one in the working directory; see package journal. They also record the
// command line, so that resume can build the same pipeline in the same directory.
//
//	$ ./prog run                 # prints the name of the run if it stops early
//	$ ./prog resume last         # continues; recorded steps are not repeated
//	$ ./prog runs                # lists runs; runs gc removes old ones
//	$ ./prog show last           # steps, durations, tokens, cost, open questions
//	$ ./prog answer last 1 yes
//	$ ./prog diff RUN RUN        # which steps differ, and why
//	$ ./prog export last --as html --to run.html
//
// The command chat runs the pipeline once for each message, and records each turn as a run:
//
//	$ ./prog chat                # Ctrl-C cancels a turn, Ctrl-D ends the chat
//	$ ./prog chat --session last # continues the newest chat; chat --list shows all
//
// A question that is not answered on standard input stays open, and its run waits. The commands to answer the question and resume
// the run are printed on standard error.
//
// # Signals
//
// The first Ctrl-C, or SIGHUP, cancels a run: running steps are cancelled, and --dag writes the DAG so far. SIGTERM drains a
// recorded run: no new step starts, running steps may finish within --grace and are recorded. A second signal of the same kind
// ends the process at once; a second SIGTERM must come at least one second after the first.
//
// # Exit status
//
// A command ends with [Done], [Failed], [Usage] or [Waiting], or, for eval with a gate, [GateFailed] or [CannotTell].
package cli
