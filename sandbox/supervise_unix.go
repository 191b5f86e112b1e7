//go:build unix

package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
)

// Values of the first argument that make this program a supervisor or a first stage.
const (
	supervisorRole = "stone-sandbox-supervisor"
	confinedRole   = "stone-sandbox-confined"
)

// File descriptors of a supervisor.
const (
	ordersFile  = 3
	reportsFile = 4
)

// terminate is the byte, sent after the order, that requests the end of the command.
const terminate = 't'

// If this process is a supervisor or the first stage of a command, init does not return, so main never runs. If main had to call
// the supervisor, a program could forget the call, and commands would not be confined.
func init() {
	if len(os.Args) != 2 || os.Args[0] != "stone-sandbox" && os.Args[1] != confinedRole {
		return
	}
	switch os.Args[1] {
	case supervisorRole:
		runtime.LockOSThread() // commands die with the thread that started them
		supervisor()
		os.Exit(0)
	case confinedRole:
		runtime.LockOSThread() // the policy applies to a thread and the program it executes
		confined()
	}
}

// supervisor runs one command and ends all its descendants.
func supervisor() {
	syscall.CloseOnExec(ordersFile)
	syscall.CloseOnExec(reportsFile)
	orders, reports := os.NewFile(ordersFile, "orders"), os.NewFile(reportsFile, "reports")
	var r report
	in := bufio.NewReader(orders)
	line, err := in.ReadBytes('\n')
	if err == nil {
		var o order
		if err = json.Unmarshal(line, &o); err == nil {
			r, err = o.supervise(in, reports)
		}
	}
	if err != nil {
		r.Error = err.Error()
	}
	// There is no process left to which an error could be reported.
	_ = json.NewEncoder(reports).Encode(r)
}

// supervise runs the order's command until it ends.
func (o order) supervise(control io.Reader, reports io.Writer) (report, error) {
	if err := adopt(); err != nil {
		return report{}, err
	}
	group := newCgroup(o.Limits)
	defer group.remove()
	if err := group.enter(); err != nil {
		return report{}, err
	}
	pid, ready, err := o.start()
	if err = errors.Join(err, group.leave()); err != nil {
		return report{}, err
	}
	if err := json.NewEncoder(reports).Encode(report{Main: pid}); err != nil {
		return report{}, err
	}
	detach()
	p := &processes{main: pid, method: o.Method, limits: o.Limits, ended: make(chan struct{})}
	go func() {
		for {
			b := make([]byte, 1)
			if _, err := control.Read(b); err != nil {
				p.kill("")
				return
			}
			p.terminate()
		}
	}()
	go p.watch()
	status, err := p.wait()
	if err := errors.Join(err, ready()); err != nil {
		return report{}, err
	}
	r := report{Code: status.ExitStatus(), Limit: p.exceeded()}
	if status.Signaled() {
		r.Code, r.Signal = -1, status.Signal().String()
	}
	return r, nil
}

// detach closes this process's copies of the command's streams, so that the streams end with the command.
func detach() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return // the streams end with the supervisor
	}
	defer null.Close()
	for fd := range 3 {
		_ = dup(int(null.Fd()), fd) // if it fails, the streams also end with the supervisor
	}
}
