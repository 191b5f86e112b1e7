package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// auditArch contains the kernel's numbers of the supported architectures. They have 64 bits and store the low half of an argument
// first.
var auditArch = map[string]uint32{
	"amd64":   unix.AUDIT_ARCH_X86_64,
	"arm64":   unix.AUDIT_ARCH_AARCH64,
	"riscv64": unix.AUDIT_ARCH_RISCV64,
}

// Offsets in struct seccomp_data, which describes a system call to the filter.
const (
	callNumber = 0
	callArch   = 4
)

// arg returns the offset of the n-th argument's low half.
func arg(n uint32) uint32 { return 16 + 8*n }

// lastKnown is the newest system call that the rules cover. From number 424 on, the numbers are the same on all architectures.
const lastKnown = unix.SYS_FILE_SETATTR

// Verdicts of the filter.
var (
	allowed = ret(unix.SECCOMP_RET_ALLOW)
	denied  = ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	missing = ret(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))
)

func ret(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jump(test uint16, k uint32, then, otherwise uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jt: then, Jf: otherwise, K: k}
}

// A rule decides whether a system call is allowed. The last instruction of its body is a verdict.
type rule struct {
	call uint32
	body []unix.SockFilter
}

func deny(calls ...uint32) (rules []rule) {
	for _, c := range calls {
		rules = append(rules, rule{c, []unix.SockFilter{denied}})
	}
	return rules
}

// onlySelf returns a rule that allows a call only if its n-th argument, a process ID, is 0.
func onlySelf(call, n uint32) rule {
	return rule{call, []unix.SockFilter{load(arg(n)), jump(unix.BPF_JEQ, 0, 0, 1), allowed, denied}}
}

// modeCalls contains the calls that set a file mode, each with the index of the argument that is the mode.
var modeCalls = append([]modeCall{
	{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2},
	{unix.SYS_MKNODAT, 2},
}, legacyModes...)

type modeCall struct{ call, arg uint32 }

// noSpecialMode returns a rule that denies a call if it would set the set-user-id or set-group-id bit of a file. Anyone who ran
// this file later would act as the user of this program.
func noSpecialMode(call, n uint32) rule {
	return rule{call, []unix.SockFilter{load(arg(n)), jump(unix.BPF_JSET, unix.S_ISUID|unix.S_ISGID, 0, 1), denied, allowed}}
}

// openCalls contains the calls that may create a file, each with the index of the argument with the flags. The next argument is the
// mode, which has a meaning only if a file is created.
var openCalls = append([]modeCall{{unix.SYS_OPENAT, 2}}, legacyOpens...)

// noSpecialFile is like noSpecialMode, but for a call that may create a file. The argument flags is the index of the flags.
func noSpecialFile(call, flags uint32) rule {
	const makes = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	return rule{call, []unix.SockFilter{
		load(arg(flags)), jump(unix.BPF_JSET, makes, 1, 0), allowed,
		load(arg(flags + 1)), jump(unix.BPF_JSET, unix.S_ISUID|unix.S_ISGID, 0, 1), denied, allowed}}
}

// noPath returns a rule that denies a call unless its n-th argument, a path, is NULL.
func noPath(call, n uint32) rule {
	return rule{call, []unix.SockFilter{
		load(arg(n)), jump(unix.BPF_JEQ, 0, 0, 3),
		load(arg(n) + 4), jump(unix.BPF_JEQ, 0, 0, 1), allowed, denied}}
}

const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// always returns the rules that apply to both methods.
func always() []rule {
	rules := deny(
		// Access to other processes through memory, descriptors and debugging.
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
		unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE,
		// Namespaces and mounts. A process in its own namespace has capabilities.
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
		unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		// Parts of the kernel that no ordinary command needs. io_uring can also create sockets.
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	)
	for _, c := range modeCalls {
		rules = append(rules, noSpecialMode(c.call, c.arg))
	}
	for _, c := range openCalls {
		rules = append(rules, noSpecialFile(c.call, c.arg))
	}
	return append(rules,
		// The mode is in memory, where a filter cannot read it. Programs fall back to openat if the call is missing.
		rule{unix.SYS_OPENAT2, []unix.SockFilter{missing}},
		// The flags of clone3 are in memory, where a filter cannot read them. Programs
		// fall back to clone if the call is missing.
		rule{unix.SYS_CLONE3, []unix.SockFilter{missing}},
		rule{unix.SYS_CLONE, []unix.SockFilter{load(arg(0)), jump(unix.BPF_JSET, newNamespaces, 0, 1), denied, allowed}},
		onlySelf(unix.SYS_PRLIMIT64, 0),
		onlySelf(unix.SYS_SCHED_SETAFFINITY, 0),
		onlySelf(unix.SYS_SCHED_SETSCHEDULER, 0),
		onlySelf(unix.SYS_SCHED_SETPARAM, 0),
		onlySelf(unix.SYS_SCHED_SETATTR, 0),
		rule{unix.SYS_SETPRIORITY, []unix.SockFilter{
			load(arg(0)), jump(unix.BPF_JEQ, unix.PRIO_PROCESS, 0, 3),
			load(arg(1)), jump(unix.BPF_JEQ, 0, 0, 1), allowed, denied}},
		rule{unix.SYS_IOPRIO_SET, []unix.SockFilter{
			load(arg(0)), jump(unix.BPF_JEQ, 1, 0, 3), // IOPRIO_WHO_PROCESS
			load(arg(1)), jump(unix.BPF_JEQ, 0, 0, 1), allowed, denied}},
		// A pair of another family, or of datagram sockets, could send to any address.
		rule{unix.SYS_SOCKETPAIR, []unix.SockFilter{
			load(arg(0)), jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 3),
			load(arg(1)), {Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xf},
			jump(unix.BPF_JEQ, unix.SOCK_DGRAM, 1, 0), allowed, denied}},
	)
}

// underLandlock returns rules for Landlock. They deny calls whose effects a namespace would isolate under Bubblewrap.
func underLandlock() []rule {
	return append(deny(legacyChanges...), append(deny(
		unix.SYS_SETSID, unix.SYS_SETPGID, // because the supervisor kills the group
		// Landlock does not guard the modes, owners, times and attributes of files. Only the calls for open files are allowed.
		unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_FILE_SETATTR,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
		// The user's shared memory, semaphores and queues, which outlive a command. Their IDs are visible in /proc/sysvipc.
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SHMDT,
		unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
		unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
		unix.SYS_FANOTIFY_INIT, // fanotify reports other users' files
	), noPath(unix.SYS_UTIMENSAT, 1))...)
}

// sockets returns rules about creating sockets. If inet is true, they allow only Internet sockets, and netlink sockets for looking
// up addresses and routes. If it is false, they deny all sockets.
func sockets(inet bool) []rule {
	if !inet {
		return deny(unix.SYS_SOCKET)
	}
	return []rule{{unix.SYS_SOCKET, []unix.SockFilter{
		load(arg(0)),
		jump(unix.BPF_JEQ, unix.AF_INET, 4, 0), jump(unix.BPF_JEQ, unix.AF_INET6, 3, 0), jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 3),
		load(arg(2)), jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, 0, 1),
		allowed, denied}}}
}

// filterCalls permanently applies the filter to the calling thread. It requires no_new_privs.
func filterCalls(m Method, network bool) error {
	// The first rule for a call applies.
	var rules []rule
	if m == Landlock {
		rules = underLandlock()
	}
	rules = append(append(rules, always()...), sockets(network || m == Bubblewrap)...) // under bubblewrap, the network namespace is empty
	filter := callFilter(rules)
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

func callFilter(rules []rule) []unix.SockFilter {
	// Programs for a different architecture are killed, because system calls have different numbers there.
	out := []unix.SockFilter{
		load(callArch), jump(unix.BPF_JEQ, auditArch[runtime.GOARCH], 1, 0), ret(unix.SECCOMP_RET_KILL_PROCESS),
		load(callNumber),
	}
	if runtime.GOARCH == "amd64" { // x32 calls have different numbers, too
		out = append(out, jump(unix.BPF_JGE, 0x40000000, 0, 1), denied)
	}
	// The rules do not cover calls of later kernels.
	out = append(out, jump(unix.BPF_JGE, lastKnown+1, 0, 1), missing)
	for _, r := range rules {
		out = append(out, jump(unix.BPF_JEQ, r.call, 0, uint8(len(r.body))))
		out = append(out, r.body...)
	}
	return append(out, allowed)
}
