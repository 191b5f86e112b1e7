package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// auditArch is what the kernel calls the architectures for which the filter works:
// those of 64 bits with the low half of an argument first.
var auditArch = map[string]uint32{
	"amd64":   unix.AUDIT_ARCH_X86_64,
	"arm64":   unix.AUDIT_ARCH_AARCH64,
	"riscv64": unix.AUDIT_ARCH_RISCV64,
}

// Offsets in what a filter sees of a system call, struct seccomp_data.
const (
	callNumber = 0
	callArch   = 4
	secondArg  = 24
)

// filterCalls denies the calling thread, and what it starts, the system calls by
// which a process leaves its group and, without network, those that make sockets.
func filterCalls(group int, network bool) error {
	filter := callFilter(group, network)
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

func callFilter(group int, network bool) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(test uint16, k uint32, then, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jt: then, Jf: otherwise, K: k}
	}
	answer := func(k uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
	}
	denied := answer(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))

	// The numbers below mean something else to a program of another architecture.
	out := []unix.SockFilter{
		load(callArch), jump(unix.BPF_JEQ, auditArch[runtime.GOARCH], 1, 0), answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(callNumber),
	}
	if runtime.GOARCH == "amd64" { // so do those of the x32 interface
		out = append(out, jump(unix.BPF_JGE, 0x40000000, 0, 1), denied)
	}
	deny := []uint32{unix.SYS_SETSID}
	if !network { // io_uring makes sockets too
		deny = append(deny, unix.SYS_SOCKET, unix.SYS_IO_URING_SETUP)
	}
	for _, call := range deny {
		out = append(out, jump(unix.BPF_JEQ, call, 0, 1), denied)
	}
	// A process may enter the group, which is how the command itself gets there.
	return append(out,
		jump(unix.BPF_JEQ, unix.SYS_SETPGID, 1, 0), answer(unix.SECCOMP_RET_ALLOW),
		load(secondArg), jump(unix.BPF_JEQ, uint32(group), 1, 0), denied,
		answer(unix.SECCOMP_RET_ALLOW))
}
