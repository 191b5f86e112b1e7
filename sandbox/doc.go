// Package sandbox runs commands confined to a policy, and ends all processes that they started:
//
//	p := sandbox.Policy{Writable: []string{"/home/me/project"}}
//	cmd := sandbox.Command(ctx, p, "make", "test")
//	cmd.Dir = "/home/me/project"
//	out, err := cmd.Output(64 << 10)
//
// # Reach
//
// A [Policy] grants a command resources besides the system's programs. Two methods enforce it. Neither needs privileges:
//
//   - [Bubblewrap], a program, gives the command its own namespaces: a file system that contains nothing else, no network, no
//     other processes.
//   - [Landlock], a part of Linux (6.12 and later), lets the command see the same file system but neither read nor write outside
//     the policy. It does not guard everything else, so a system call filter denies sockets, changes of modes, owners and times
//     by path (use fchmod and futimens), System V shared memory, semaphores and queues, fanotify, and leaving the process group.
//     Some things stay visible: names and changes of names in directories by inotify, attributes of files, targets of links, and
//     the command lines of processes in /proc.
//
// Under both a command cannot set the set-user-id and set-group-id bits of a file. It has no capabilities, even if this process
// runs as root. It cannot trace or read other processes, change their limits, or create namespaces. It cannot open Unix sockets
// that have an address. /proc and /sys are read-only.
//
// Bubblewrap is stronger. It is found in the PATH of this process. [Find] returns the method used; "stone version --verbose"
// prints it, the record of a step contains it, and the command line prints once why Landlock is used.
//
// A network excludes the machine's loopback, where servers often require no authentication. The program slirp4netns provides it
// for a command under Bubblewrap, and ends with the command. A policy with Loopback needs no slirp4netns.
//
// On a machine where neither works, every command is refused unless its policy selects
// [Unconfined].
//
// The names in [Protected] are read-only directly in a writable directory. Under Landlock, commands cannot create, remove or
// rename entries of a directory that contains such a name, only change existing entries and their contents. If a command creates
// a protected name that did not exist, an error is returned.
//
// # End
//
// A supervisor, which is this program started a second time, starts the command. It is the parent of every descendant that loses
// its own parent. It is not confined, because a command in the same domain as a thread of this process could read this process's
// keys in /proc. When the command ends, when its context is done, or when this process dies, the supervisor kills all of them and
// waits until they have ended. A confined command cannot escape. An unconfined command could escape only by starting processes
// faster than they are killed; then Run returns an error.
//
// # Limits
//
// [Limits] apply to memory, processes, the size of a file, open files and processor time. The kernel enforces the last three, for
// each process. The supervisor measures memory and the number of processes every 50 ms and kills a command that exceeds them.
// Between measurements, the kernel limits them:
//
//   - Where this process may create control groups (as root, or in a delegated part of the hierarchy), one limits the memory of
//     all processes together, and their threads to eight times the number of processes.
//   - For any user but root, a resource limit restricts the user's threads to those that exist when the command starts plus eight
//     times the number of processes.
//   - Otherwise a command can use more memory for as long as 50 ms. Memory that is in
//     no process, such as files of memfd_create that are not mapped, is not counted.
//
// The number of files that a command writes is not limited: use a file system with a quota. The limits of memory and processes
// apply on Linux only.
//
// # This process
//
// The package starts this program again, with an argument that its init function
// recognizes, so main never runs in it. Before the first command it calls
// prctl(PR_SET_DUMPABLE, 0): other processes of the same user then can neither read
// this one's memory and environment nor trace it, and it writes no core dumps.
//
// [Command] returns a [Cmd], which is run once.
package sandbox
