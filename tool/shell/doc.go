// Package shell gives agents tools for running commands: run_command, start_command, check_command and wait_commands.
//
//	session := shell.New(shell.Config{Dir: "work"})
//	defer session.Close()
//	agent.Config{Use: []agent.Middleware{shell.Run(session), shell.Start(session), shell.Wait(session)}}
//
// # Reach
//
// A command runs under /bin/sh in the directory Dir, whose files it may change. It can also use the system's programs and the
// session's directory for temporary files, which is its HOME and TMPDIR. It sees no other files, no other processes and only a
// few harmless environment variables, and has neither network access nor privileges. The author of the agent must grant
// everything else. A Go toolchain, for example, needs:
//
//	shell.Config{
//		Dir:      "work",
//		ReadOnly: []string{modcache},
//		Writable: []string{gocache},
//		Env:      []string{"GOMODCACHE=" + modcache, "GOCACHE=" + gocache, "GOFLAGS=-mod=readonly"},
//	}
//
// Bubblewrap (the program bwrap) enforces these restrictions. If bwrap does not work, the sandbox uses Landlock, a part of Linux,
// whose protection is somewhat weaker: a command then sees the names of all files and processes, cannot use /tmp or change modes
// by path, and cannot open a socket unless Network and Loopback are set. If neither works, commands fail and the agent halts,
// unless the author has set Unconfined.
//
// # End
//
// A command has a time limit. When the limit expires, or the session or the run ends, the command and its descendants receive
// SIGTERM, followed by SIGKILL two seconds later. When the command ends, all its descendants are ended too. The same happens when
// this program ends, even if it is killed. Package [github.com/stonelayer/stone/sandbox] describes this and the limits of a
// command.
//
// # Results for the model
//
// The model receives the exit code, standard output and standard error. If one of the outputs is longer than MaxOutput bytes,
// only its beginning and its end are kept, and a line between them states how many bytes are missing.
//
// # Background
//
// A [Session] runs the commands of its tools. [Run] runs a command and waits for it. [Start] starts a command in the background,
// [Check] returns the state and output of a background command, and [Wait] waits for background commands to end.
package shell
