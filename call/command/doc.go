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
// The program is named by its absolute path. It gets none of the variables of the
// environment but those that Config.Env names. It runs in a process group of its
// own, which is ended when the program ends, when nobody waits for its answer any
// more, and when it writes too much. Where its scope has directories, or denies the
// network, the program is confined to that, or refused if this machine has no means.
package command
