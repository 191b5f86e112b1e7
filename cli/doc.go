// Package cli is the command line of Stone, for one pipeline or for any pipeline.
//
// A program passes its pipeline to [Main] and thereby gets the complete command:
//
//	func main() { cli.Main(Pipeline) }
//
//	$ ./prog run --dag run.jsonl -- --dir .
//	$ ./prog validate
//
// The command stone, in cmd/stone, offers the same commands with an additional argument PIPELINE: a Go package that exports
// Pipeline, as in stone run ./examples/audit, or a plan, as in stone run plan.edn --bind x=1.
//
// Without a sub-command, a program shows its pipeline on the full screen of a terminal, and so does the command stone. A program
// needs the part screen.Part for this; see [Part]. The command stone looks for the pipeline in the nearest .stone directory,
// where settings.json names the pipeline and the model of [DefaultModel]; see package cli/internal/config.
//
// The help lists the commands in groups, by purpose: run, look, check, serve, evaluate and configure. All help texts are in
// commands.txt.
//
// Arguments after "--" belong to the pipeline. Results go to standard output, everything else to standard error. Exit codes: 0
// done; 1 the run failed or was interrupted, the pipeline is invalid, or the database is unavailable; 2 wrong usage or
// configuration; 3 the run is waiting for an answer. With a gate, eval also uses 4 if the gate failed and 5 if there are too few
// cases to tell. Validate, trace and install-skill use only 0 and 1. Leaving the screen gives 0 unless a run was active.
//
// # Calls
//
// The capabilities that answer calls are configured in .stone/stone.edn or stone.json, in the nearest .stone directory, or in the
// file that --config names; see package internal/config. They answer the calls of plans, requests, and pipelines that use
// [Applicator]. A program supports the kinds of capabilities whose parts its main function names, such as cel.Part and mcp.Part,
// or all of them with all.Parts of package cli/all. If a configuration uses any other kind, the error names the part to add. A
// capability of the kind go is the pipeline of a package: the command stone links this package itself, and other programs must
// [Provide] it.
//
//	$ stone config check         # every fault, with its place
//	$ stone model caps           # the capabilities, their state and their price
//	$ stone act request.edn      # reads a request envelope, prints a response envelope
//	$ stone explain plan.edn     # the candidates of each call, and the rules
//
// The configuration, or flags such as --grant and --max-usd, also determine which effects a run may have, and its budget. By
// default, plans and requests may have no effects.
//
// # Recorded runs
//
// The command run and the screen record runs in .stone/stone.db, in the nearest .stone directory or a new one in the working
// directory; see package journal. The command line is recorded, too, so that resume can build the same pipeline in the same
// directory.
//
//	$ ./prog run                 # prints the name of the run if it stops early
//	$ ./prog resume last         # continues; recorded steps are not repeated
//	$ ./prog runs                # lists runs; runs gc removes old ones
//	$ ./prog show last           # steps, durations, tokens, cost, open questions
//	$ ./prog answer last 1 yes
//	$ ./prog diff RUN RUN        # which steps differ, and why
//	$ ./prog export last --as html --to run.html
//
// The chat command runs the pipeline once for each message, and records each turn as a run:
//
//	$ ./prog chat                # Ctrl-C cancels a turn, Ctrl-D ends the chat
//	$ ./prog chat --session last # continues the newest chat; chat --list shows all
//
// A question that is not answered on standard input remains open, and its run waits. The commands that answer the question and
// resume the run are printed on standard error.
//
// # Signals
//
// The first Ctrl-C, or SIGHUP, cancels a run: running steps are cancelled, and --dag writes the DAG as far as it exists. SIGTERM
// drains a recorded run: no new step starts, and running steps may finish within --grace and are recorded. A second signal of the
// same kind ends the process at once; a second SIGTERM must come at least one second after the first.
//
// # Exit status
//
// A command exits with [Done], [Failed], [Usage] or [Waiting]. Eval with a gate also uses [GateFailed] and [CannotTell].
package cli
