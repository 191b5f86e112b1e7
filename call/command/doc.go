// Package command runs programs as capabilities and as checks.
//
// A capability receives the envelope of the request as JSON on its standard input. It writes the envelope of the response, in
// JSON or EDN, or just the out, to its standard output:
//
//	caps := call.NewRegistry(command.New(
//		call.Metadata{ID: "tool/wc", Intents: []string{"text/count"}, Effects: []string{"process"}},
//		command.Config{Command: []string{"/usr/local/bin/count-words", "--json"}},
//	))
//
// A program streams by writing its answer in pieces, one per line, in the format that [call.ReadOutput] describes. The pieces are
// passed on as they arrive.
//
// If the program exits with a nonzero status, the capability fails, and the message is the end of the program's standard error. A
// check receives {"request": …, "out": …} and passes if the program exits with status 0.
//
// The field "stack" of the envelope lists the calls around the request. A program that sends a request itself, for example with
// stone act, adds its own call to the stack and passes it on. Calls that are nested too deeply are then rejected across processes
// too.
//
// The program is named by its absolute path. Package [sandbox] runs it. The program and all its child processes end when it
// exits, when the request is canceled, and when it writes too much or exceeds a limit. If its scope lists directories or denies
// the network, the program is confined accordingly, or rejected if this machine has no sandbox.
//
// [sandbox]: https://pkg.go.dev/github.com/stonelayer/stone/sandbox
package command
