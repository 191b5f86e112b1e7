// Package cli is the command line of Stone, for one pipeline or for any.
//
// A program passes its pipeline to [Main] and gets the whole command:
//
//	func main() { cli.Main(Pipeline) }
//
//	$ ./prog run --dag run.jsonl -- --dir .
//	$ ./prog validate
//
// The command stone, in cmd/stone, is the same with a PIPELINE argument: a Go package that exports Pipeline, as in stone run
// ./examples/audit, or a plan, as in stone run plan.edn --bind x=1.
//
// Without a command, at a terminal, both show their pipeline on the whole screen. A
// program needs the part screen.Part for that, see [Part]. The command stone finds the pipeline
// in the nearest directory .stone, whose settings.json names the pipeline and the model
// of [DefaultModel]; see package cli/internal/config.
//
// The commands run, look, check, serve, evaluate or configure: help prints them in these groups, and commands.txt contains their
// texts.
//
// Arguments after "--" belong to the pipeline. Results go to standard output, everything
// else to standard error. Exit codes: 0 done; 1 the run failed or was interrupted, the
// pipeline is invalid, or the database is not available now; 2 wrong usage or configuration;
// 3 the run waits for an answer.
// Eval with a gate also has 4, the gate failed, and 5, there are too few cases to tell.
// Validate, trace and install-skill return only 0 and 1. Leaving the screen returns 0
// unless a run was active.
//
// # Calls
//
// The capabilities that answer calls are configured in .stone/stone.edn or stone.json, in the nearest directory .stone, or in the
// file that --config names; see package internal/config. This applies to plans, requests, and pipelines that use [Applicator]. A
// program has the kinds of capabilities that its main function names: cel.Part, mcp.Part, sat.Part and uci.Part, of the packages
// below call, or every part with all.Parts, of package cli/all. If a configuration names another kind, the error names the part
// to add. A capability of kind go is the pipeline of a package: the command stone links it, other programs [Provide] it.
//
//	$ stone config check         # every fault, with its place
//	$ stone model caps           # the capabilities, their state and their price
//	$ stone act request.edn      # reads a request envelope, prints a response envelope
//	$ stone explain plan.edn     # the candidates of each call, and the rules
//
// The configuration, or --grant, --max-usd and similar flags, also set the effects and the
// budget of a run. By default, plans and requests have no effects.
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
// The command chat runs the pipeline once for each message, and keeps each turn as a run:
//
//	$ ./prog chat                # Ctrl-C cancels a turn, Ctrl-D ends the chat
//	$ ./prog chat --session last # continues the newest chat; chat --list shows all
//
// A question that is not answered on standard input waits, and so does its run. The
// commands to answer and resume it are printed on standard error.
//
// # Signals
//
// The first Ctrl-C, or SIGHUP, cancels a run: running steps are cancelled, and --dag writes the DAG so far. SIGTERM drains a
// recorded run: no new step starts, running steps may finish within --grace and are recorded. A second signal of the same kind
// ends the process at once; a second SIGTERM must come at least one second after the first.
//
// # Exit status
//
// A command ends with [Done], [Failed], [Usage], [Waiting], or, of eval with a gate, [GateFailed] or [CannotTell].
package cli
