// Package command makes capabilities and checks of programs.
//
// A capability gets the envelope of the request as JSON on its standard input. What
// it writes on its standard output is the envelope of the response, in JSON or EDN,
// or the out alone:
//
//	caps := call.NewRegistry(command.New(
//		call.Metadata{ID: "tool/wc", Intents: []string{"text/count"}, Effects: []string{"process"}},
//		command.Config{Command: []string{"/usr/local/bin/count-words", "--json"}},
//	))
//
// It fails when it exits with another status than 0; the message is the end of its
// standard error. A check gets {"request": …, "out": …} and holds when the program
// exits with 0.
//
// The program is named by its absolute path. Package [sandbox] runs it: everything
// that it has started ends when it does, when nobody waits for its answer any more,
// and when it writes too much or exceeds a limit. If its scope lists directories or
// denies the network, the program is confined to that, or refused if this machine has
// no sandbox.
//
// [sandbox]: https://pkg.go.dev/github.com/stonelayer/stone/sandbox
package command
