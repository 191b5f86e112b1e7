// Package shell gives agents tools for running commands: run_command, start_command, check_command and wait_commands.
//
//	session := shell.New(shell.Config{Dir: "work"})
//	defer session.Close()
//	agent.Config{Use: []agent.Middleware{shell.Run(session), shell.Start(session), shell.Wait(session)}}
//
// # Reach
//
// A command runs under /bin/sh in Dir, which it may change. It sees the system's programs and the session's directory for
// temporary files, which is also HOME and TMPDIR. It sees no other files or processes and only a few harmless environment
// variables, and it has no network access and no privileges. The author of the agent grants everything else; for a Go toolchain,
// for example:
//
//	shell.Config{
//		Dir:      "work",
//		ReadOnly: []string{modcache},
//		Writable: []string{gocache},
//		Env:      []string{"GOMODCACHE=" + modcache, "GOCACHE=" + gocache, "GOFLAGS=-mod=readonly"},
//	}
//
// Bubblewrap (the program bwrap) enforces this. If it does not work, Landlock is used, which is part of Linux and somewhat
// weaker: a command then sees the names of all files and processes, cannot use /tmp or change modes by path, and cannot open a
// socket unless Network and Loopback are set. If neither works, commands fail and the agent halts, unless the author sets
// Unconfined.
//
// # End
//
// A command has a time limit. When the limit expires, or the session or the run ends, the command and its descendants receive
// SIGTERM, followed by SIGKILL two seconds later. All descendants end with the command, and with this program, even if the
// program is killed; see package [github.com/stonelayer/stone/sandbox], which also describes the limits of a command.
//
// # Results for the model
//
// The model receives the exit code, standard output and standard error. The first and the last part of each output are kept,
// together at most MaxOutput bytes; a line between the two parts states how many bytes are missing.
//
// # Background
//
// A [Session] runs commands. [Run] waits for a command, [Start] starts one in the background, [Check] returns its state and
// output, and [Wait] waits for it to end.
package shell
