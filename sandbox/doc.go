// Package sandbox runs commands confined to a policy, and ends all processes that they started:
//
//	p := sandbox.Policy{Writable: []string{"/home/me/project"}}
//	cmd := sandbox.Command(ctx, p, "make", "test")
//	cmd.Dir = "/home/me/project"
//	out, err := cmd.Output(64 << 10)
//
// # Reach
//
// A [Policy] grants a command resources in addition to the system's programs. Two methods can enforce it, neither of which needs
// privileges:
//
//   - [Bubblewrap], a program, runs the command in its own namespaces, with a file system that contains only what the policy
//     grants, without a network and without other processes.
//   - [Landlock], a part of Linux (6.12 and later), lets the command see the same file system, but prevents it from reading and
//     writing outside the policy. Landlock does not guard everything, so a system call filter also denies sockets, changes of
//     modes, owners and times by path (use fchmod and futimens), System V shared memory, semaphores and queues, fanotify, and
//     leaving the process group. Some things stay visible: file names, and changes of names through inotify; attributes of files;
//     targets of links; and the command lines of processes in /proc.
//
// Under either method, a command cannot set the set-user-id and set-group-id bits of a file. It has no capabilities, even if this
// process runs as root. It cannot trace or read other processes, change their limits, or create namespaces. It cannot open Unix
// sockets that have an address. /proc and /sys are read-only.
//
// Bubblewrap is stronger, and is used if the PATH of this process contains it and it works. [Find] returns the method used;
// "stone version --verbose" prints it, and the record of a step contains it. If Landlock is used, the command line prints the
// reason once.
//
// A network does not include the machine's loopback interface, where servers often require no authentication. For a command under
// Bubblewrap, the program slirp4netns provides such a network, and ends with the command. A policy with Loopback does not need
// slirp4netns.
//
// On a machine where neither method works, every command is refused unless its policy selects [Unconfined].
//
// Directly within a writable directory, the names in [Protected] are read-only. Under Landlock, if a directory contains such a
// name, commands can change the contents of the directory's other entries, but cannot create, remove or rename entries of that
// directory. If a command creates a protected name that did not exist, Run returns an error.
//
// # End
//
// A supervisor, which is a second instance of this program, starts the command. It becomes the parent of every descendant that
// loses its own parent. The supervisor is not confined, because a command in the same domain as a thread of this process could
// read this process's keys in /proc. When the command ends, when its context is done, or when this process dies, the supervisor
// kills all remaining processes and waits until they have ended. A confined command cannot escape. An unconfined command could
// escape only by starting processes faster than they are killed, in which case Run returns an error.
//
// # Limits
//
// [Limits] apply to memory, the number of processes, the size of each file, the number of open files, and processor time. The
// kernel enforces the last three for each process. The supervisor measures memory and the number of processes every 50 ms and
// kills a command that exceeds these limits. Between measurements, the kernel limits them:
//
//   - Where this process may create control groups (as root, or in a delegated part of the hierarchy), a control group limits the
//     memory of all processes together, and limits the number of their threads to eight times the number of processes.
//   - For any user except root, a resource limit restricts the number of the user's threads to those that exist when the command
//     starts, plus eight times the number of processes.
//   - Otherwise, a command can use more memory for as long as 50 ms. Memory that does not belong to a process, such as unmapped
//     files made with memfd_create, is not counted.
//
// The number of files that a command writes is not limited: use a file system with a quota. The limits on memory and processes
// apply only on Linux.
//
// # This process
//
// The package starts this program again, with an argument that the package's init function recognizes, so main does not run in
// that process. Before the first command, the package calls prctl(PR_SET_DUMPABLE, 0) in this process. Other processes of the
// same user can then neither trace this process nor read its memory and environment, and it writes no core dumps.
//
// [Command] returns a [Cmd], which is run once.
package sandbox
