// Package shell provides agents with tools for commands: run_command, start_command, check_command and wait_commands.
//
//	session := shell.New(shell.Config{Dir: "work"})
//	defer session.Close()
//	agent.Config{Use: []agent.Middleware{shell.Run(session), shell.Start(session), shell.Wait(session)}}
//
// # Reach
//
// A command runs under /bin/sh in Dir, which it may change, and sees the programs
// of the system and a directory for temporary files that the session owns (HOME and
// TMPDIR lead there). It sees no other files, only a few harmless variables of the
// environment, no network, no other processes, and has no privileges. The author grants
// anything beyond; for a Go toolchain, for example:
//
//	shell.Config{
//		Dir:      "work",
//		ReadOnly: []string{modcache},
//		Writable: []string{gocache},
//		Env:      []string{"GOMODCACHE=" + modcache, "GOCACHE=" + gocache, "GOFLAGS=-mod=readonly"},
//	}
//
// Bubblewrap (the program bwrap) enforces this. If it does not work, Landlock does, which is part of Linux and somewhat weaker: a
// command then sees the names of all files and processes, cannot use /tmp or change modes by path, and opens no socket unless
// Network and Loopback are set. If neither works, commands are refused and the agent halts, unless the author sets Unconfined.
//
// # End
//
// A command has a time limit. When it expires, or the session or the run ends, the
// command and its descendants get SIGTERM, and SIGKILL two seconds later. All
// descendants end with the command, and with this program, even if that is killed: see
// package [github.com/stonelayer/stone/sandbox], which also describes the limits of a
// command.
//
// # Results for the model
//
// The model reads the exit code, standard output and standard error. Of each output the
// first and the last part are kept, MaxOutput bytes in all; a line in between counts the
// missing bytes.
//
// # Background
//
// A [Session] runs commands: [Start] starts one in the background, [Check] looks at its output, and [Wait] waits for its end.
package shell
