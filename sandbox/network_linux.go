package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// resolver is the resolver configuration for a command with its own network. Slirp4netns forwards queries to the machine's
// resolver, which may listen on the machine's loopback interface.
const resolver = "nameserver 10.0.2.3\n"

// connector returns the absolute path of slirp4netns, which provides a network without the machine's loopback interface. It returns
// an error if the program is not installed or the method does not support it.
func connector(m Method) (string, error) {
	const choose = "give the command the loopback too, or no network"
	if m == Landlock {
		return "", fmt.Errorf("sandbox: under Landlock a network includes the loopback of this machine: %s, or make Bubblewrap work", choose)
	}
	path, err := lookPath("slirp4netns")
	if err != nil {
		return "", fmt.Errorf("sandbox: a network without the loopback of this machine needs the program slirp4netns (package slirp4netns), which is not installed: install it, or %s", choose)
	}
	return path, nil
}

// A link connects the network namespace of a command to the network. Some of its files are passed to bwrap.
type link struct {
	info, infoEnd   *os.File // pipe on which bwrap reports the ID of the process in the namespace
	names, namesEnd *os.File // pipe from which bwrap reads the resolver configuration
}

func newLink() (l *link, err error) {
	l = new(link)
	if l.info, l.infoEnd, err = os.Pipe(); err == nil {
		if l.namesEnd, l.names, err = os.Pipe(); err == nil {
			_, err = io.WriteString(l.names, resolver) // does not block, because the text is shorter than the buffer of a pipe
		}
	}
	if err != nil {
		l.close()
		_ = l.info.Close() // or it was never opened
		return nil, err
	}
	return l, nil
}

// files returns the descriptors that bwrap receives as infoFile and namesFile.
func (l *link) files() []uintptr { return []uintptr{l.infoEnd.Fd(), l.namesEnd.Fd()} }

// close closes the ends of the pipes, except info, which connect closes.
func (l *link) close() {
	for _, f := range []*os.File{l.infoEnd, l.names, l.namesEnd} {
		if f != nil {
			_ = f.Close() // the end of a pipe
		}
	}
}

// connect starts slirp4netns for the namespace that bwrap reports, and returns when the network is up. Slirp4netns ends with the
// supervisor. If bwrap fails, connect does nothing.
func (l *link) connect(program string) error {
	defer l.info.Close()
	var told struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(l.info).Decode(&told); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read the process id that bwrap reports: %w", err)
	}
	// Bubblewrap may create a second user namespace. The network namespace belongs to the first.
	space := fmt.Sprintf("/proc/%d/ns/net", told.Child)
	network, err := os.Open(space)
	if err != nil {
		return err
	}
	defer network.Close()
	owner, err := unix.IoctlRetInt(int(network.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return fmt.Errorf("the owner of %s: %w", space, err)
	}
	users := os.NewFile(uintptr(owner), "user namespace")
	defer users.Close()
	ready, readyEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	defer readyEnd.Close()
	errs, errsEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer errs.Close()
	defer errsEnd.Close()
	// Slirp4netns ends when the other end of this pipe, which this process keeps open, is closed.
	var alive [2]int
	if err := unix.Pipe2(alive[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	exit := os.NewFile(uintptr(alive[0]), "exit")
	defer exit.Close()
	cmd := exec.Command(program, "--configure", "--mtu=65520", "--disable-host-loopback", "--ready-fd=3", "--exit-fd=4",
		"--userns-path=/proc/self/fd/5", "--netns-type=path", "/proc/self/fd/6", "tap0")
	cmd.Stderr, cmd.ExtraFiles = errsEnd, []*os.File{readyEnd, exit, users, network}
	if err := cmd.Start(); err != nil { // slirp4netns is reaped with the command's descendants
		return err
	}
	_, _ = readyEnd.Close(), errsEnd.Close() // the ends of pipes
	if _, err := io.ReadFull(ready, make([]byte, 1)); err == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(errs, 1<<10))
	return errors.Join(fmt.Errorf("%s does not connect the network: %s", program, strings.TrimSpace(string(text))), err)
}

// namesPath returns the path of the file that configures the resolver. On the machine, this file is often a link.
func namesPath(whole bool) string {
	const path = "/etc/resolv.conf"
	if real, err := filepath.EvalSymlinks(path); err == nil && whole {
		return real
	}
	return path
}
