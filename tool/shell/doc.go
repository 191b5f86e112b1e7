// Package shell has the tools with which an agent runs commands: run_command,
// start_command, check_command and wait_commands.
//
//	session := shell.New(shell.Config{Dir: "work"})
//	defer session.Close()
//	agent.Config{Use: []agent.Middleware{shell.Run(session), shell.Start(session), shell.Wait(session)}}
//
// # What a command can reach
//
// A command runs under /bin/sh in Dir, which it may change, and sees the programs
// of the system and a directory for temporary files that the session owns (HOME and
// TMPDIR lead there). It sees no other files, no variables of the environment but a
// few harmless ones, no network, no other processes, and has no privileges. What it
// needs beyond that is for the author to name; for a Go toolchain, as an example:
//
//	shell.Config{
//		Dir:      "work",
//		ReadOnly: []string{modcache},
//		Writable: []string{gocache},
//		Env:      []string{"GOMODCACHE=" + modcache, "GOCACHE=" + gocache, "GOFLAGS=-mod=readonly"},
//	}
//
// Bubblewrap (the program bwrap) enforces this. Where it does not work, Landlock
// does, which is a part of Linux and somewhat weaker: a command then sees the names of
// all files and processes, cannot use /tmp or change modes by path, and opens no
// socket unless Network is set. Where neither works, commands are refused and the agent
// halts, unless the author sets Unconfined.
//
// # When a command ends
//
// A command has a time limit. When it expires, or the session or the run ends, the
// command and everything it started get SIGTERM, and SIGKILL two seconds later.
// Everything that a command started ends with it, and with this program, even if
// that is killed: see package [github.com/stonelayer/stone/sandbox], which also
// describes the limits of a command.
//
// # What the model reads
//
// The exit code, standard output and standard error. Of each output the first and
// the last part are kept, MaxOutput bytes in all; a line in between says how much is
// left out.
package shell
