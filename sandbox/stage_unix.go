//go:build unix

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// File descriptors of a command's first stage.
const (
	orderFile = 3
	stateFile = 4
	selfFile  = 5 // this program, for bubblewrap
	infoFile  = 6 // where bubblewrap reports its child, if the command has its own network
	namesFile = 7 // the resolver configuration, if the command has its own network
)

// confining is the message that the first stage sends before it becomes the command.
const confining = "."

// start starts the command and returns its process ID. After the command has ended, call started: it returns an error if the
// command could not be started, and otherwise nil.
func (o order) start() (pid int, started func() error, err error) {
	self, err := executable()
	if err != nil {
		return 0, nil, err
	}
	orders, toStage, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer orders.Close()
	fromStage, states, err := os.Pipe()
	if err != nil {
		return 0, nil, errors.Join(err, toStage.Close())
	}
	defer states.Close()
	args := []string{"stone-sandbox", confinedRole}
	files := []uintptr{0, 1, 2, orders.Fd(), states.Fd()}
	path := self
	var network *link // nil if the command has the machine's network or no network
	if o.Method == Bubblewrap {
		image, err := os.Open(self)
		if err != nil {
			return 0, nil, errors.Join(err, toStage.Close(), fromStage.Close())
		}
		defer image.Close()
		files = append(files, image.Fd())
		if o.Connector != "" {
			if network, err = newLink(); err != nil {
				return 0, nil, errors.Join(err, toStage.Close(), fromStage.Close())
			}
			defer network.close()
			files = append(files, network.files()...)
		}
		wrapped := o.bubblewrap()
		path, args = wrapped[0], append(wrapped, fmt.Sprintf("/proc/self/fd/%d", selfFile), confinedRole)
	}
	pid, err = syscall.ForkExec(path, args, &syscall.ProcAttr{Env: []string{}, Files: files, Sys: dieWithParent()})
	if err != nil {
		return 0, nil, errors.Join(fmt.Errorf("%s: %w", args[0], err), toStage.Close(), fromStage.Close())
	}
	connected := make(chan error, 1)
	go func() {
		var err error
		if network != nil {
			err = network.connect(o.Connector)
		}
		if connected <- err; err == nil {
			// A process that ends before reading everything reports the reason itself.
			_ = json.NewEncoder(toStage).Encode(o)
		}
		_ = toStage.Close() // without a complete order, the stage ends
	}()
	return pid, func() error {
		defer fromStage.Close()
		if err := <-connected; err != nil {
			return err
		}
		text, err := io.ReadAll(fromStage)
		switch said := string(text); {
		case err != nil:
			return err
		case said == "":
			return fmt.Errorf("%s could not set up the sandbox", o.Method)
		case said != confining:
			return errors.New(strings.TrimPrefix(said, confining))
		}
		return nil
	}, nil
}

// confined applies the policy to this process and then executes the command in it.
func confined() {
	states := os.NewFile(stateFile, "states")
	var o order
	err := json.NewDecoder(os.NewFile(orderFile, "order")).Decode(&o)
	if err == nil && o.Method != Bubblewrap {
		err = os.Chdir(o.Dir)
	}
	if err == nil {
		err = o.confine()
	}
	if err == nil {
		if _, err = states.WriteString(confining); err == nil {
			err = &os.PathError{Op: "exec", Path: o.Path, Err: syscall.Exec(o.Path, o.Args, o.Env)}
		}
	}
	_, _ = states.WriteString(err.Error()) // fails only if the supervisor has ended
	os.Exit(1)
}
