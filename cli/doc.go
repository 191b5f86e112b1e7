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
// names the Go package whose Pipeline is meant: stone run ./examples/audit.
//
// At a terminal, without a command, both run their pipeline on the whole of the
// screen; stone finds it in the nearest directory .stone. Its settings.json says
// where the pipeline is and which model [DefaultModel] is, see package
// internal/config.
//
// What follows "--" belongs to the pipeline. Results go to standard output,
// everything else to standard error. The exit code is 0 when all is done, 1 when
// the run failed or the pipeline is invalid, 2 for wrong usage or configuration.
// Validate and trace know 0 and 1 only; leaving the screen is 0 unless a run was
// under way.
//
// The first Ctrl-C, or SIGTERM, cancels a run: the running steps are told to
// end, the DAG so far is written where it was asked for. The second ends the
// process at once.
package cli
