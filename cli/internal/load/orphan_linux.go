package load

import (
	"os/exec"
	"runtime"
	"syscall"
)

// bind makes the kernel kill the program when this process dies, even if by SIGKILL, because nothing else would stop the program
// then. The kernel watches the thread that starts the program, so this goroutine is locked to its thread until release is called.
func bind(cmd *exec.Cmd) (release func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
