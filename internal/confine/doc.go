// Package confine runs commands that reach only what they are given, and of which
// nothing is left when they end.
//
// # Reach
//
// A [Policy] names what a command may use beside the programs of the system. Two
// [Method]s enforce it, both without privileges:
//
//   - Bubblewrap, a program, gives the command namespaces of its own: a file system
//     in which nothing else exists, no network, no other processes.
//   - Landlock, a part of Linux (6.2 and later), lets the command see the same file
//     system but neither read nor write outside of the policy. It does not guard
//     what is no content: whose files the command's user owns, it may chmod. It has
//     no notion of the network or of leaving a process group; a system call filter
//     denies both, sockets of every kind included.
//
// Under both a command has no capabilities, even if the program runs as root.
//
// Landlock and the filter hold for a thread and what it starts. The thread that
// starts a command therefore takes them on itself and is thrown away afterwards;
// no second program and no hook in main is needed. A program that calls
// syscall.Setuid or the like, which needs all of its threads to be alike, does so
// before its first command.
//
// # End
//
// A command runs in a process group that a keeper holds: a shell that waits for the
// program to end, however it ends, and then kills the group. So the group cannot
// be mistaken for another one of the same number, and no command outlives the
// program. A confined command cannot leave the group (or, under Bubblewrap, its
// process namespace); an unconfined one can.
package confine
