package load

import (
	"os/exec"
	"runtime"
	"syscall"
)

// bind makes the kernel kill the program when this process dies, even by SIGKILL, because nothing else would end it then. The
// kernel watches the thread that starts the program, so this goroutine keeps its thread until release.
func bind(cmd *exec.Cmd) (release func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
