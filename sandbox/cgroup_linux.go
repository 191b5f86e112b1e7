package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// threads is the number of threads that a process may have on average. It is needed because the limit is a number of processes, but
// the kernel counts threads.
const threads = 8

// A cgroup enforces a command's limits if this process may create control groups, either as root or in a delegated part of the
// hierarchy. Otherwise it is empty.
type cgroup struct {
	dirs []string // directories of the groups; in version 1, one for each controller
	home []string // directories of the supervisor's own groups, in the same order
}

// newCgroup creates a control group with the limits l, or returns an empty cgroup if that is not possible.
func newCgroup(l Limits) (c cgroup) {
	lines, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return c
	}
	for line := range bytes.Lines(lines) {
		_, rest, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		switch controllers {
		case "":
			c.add(filepath.Join("/sys/fs/cgroup", path), map[string]int64{
				"pids.max": threads * int64(l.Processes), "memory.max": l.Memory})
		case "pids":
			c.add(filepath.Join("/sys/fs/cgroup/pids", path), map[string]int64{"pids.max": threads * int64(l.Processes)})
		case "memory":
			c.add(filepath.Join("/sys/fs/cgroup/memory", path), map[string]int64{"memory.limit_in_bytes": l.Memory})
		}
	}
	return c
}

// add creates a group below home that enforces each of the limits whose controller exists. It creates no group if there is none.
func (c *cgroup) add(home string, limits map[string]int64) {
	dir := filepath.Join(home, fmt.Sprintf("stone-%d", os.Getpid()))
	if os.Mkdir(dir, 0o755) != nil {
		return // usual case: this process may not create groups
	}
	set := 0
	for name, value := range limits {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err != nil || value <= 0 {
			continue // the controller is missing, or no limit is set
		}
		if os.WriteFile(file, []byte(strconv.FormatInt(value, 10)), 0) == nil {
			set++
		}
	}
	if set == 0 {
		_ = os.Remove(dir) // removes the empty directory
		return
	}
	c.dirs, c.home = append(c.dirs, dir), append(c.home, home)
}

// enter moves this process into the groups, and leave moves it out. A process that is started between the two calls is in the
// groups from the start.
func (c cgroup) enter() error { return move(c.dirs) }
func (c cgroup) leave() error { return move(c.home) }

func move(dirs []string) error {
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("moving into a control group: %w", err)
		}
	}
	return nil
}

// remove deletes the groups. It retries, because the kernel may take a moment to notice that their processes have been reaped.
func (c cgroup) remove() {
	for _, dir := range c.dirs {
		for range 100 {
			if os.Remove(dir) == nil {
				break
			}
			time.Sleep(pause)
		}
	}
}
