package cli

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// mostCrashes bounds the file of crashes, in bytes: when it is larger, the next process starts it anew.
const mostCrashes = 1 << 20

// crashFile receives the output of the runtime when a process of the command crashes.
func crashFile() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "stone", "crashes.txt"), err
}

// keepCrashes lets the runtime write crashes to a file too, which the command doctor reads. Where the
// file cannot be written, they are only printed.
func keepCrashes() {
	name, err := crashFile()
	if err != nil || os.MkdirAll(filepath.Dir(name), 0o700) != nil {
		return
	}
	if info, err := os.Stat(name); err == nil && info.Size() > mostCrashes {
		_ = os.Truncate(name, 0) // otherwise the file grows by one more crash
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	_ = debug.SetCrashOutput(f, debug.CrashOptions{}) // the runtime keeps a duplicate
	f.Close()
}

// lastCrash returns the first line of the newest crash, "" if there was none, and its time.
func lastCrash() (line string, at time.Time, err error) {
	name, err := crashFile()
	if err != nil {
		return "", at, err
	}
	f, err := os.Open(name)
	if err != nil {
		if os.IsNotExist(err) {
			err = nil
		}
		return "", at, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		at = info.ModTime()
	}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 2*mostCrashes)
	for in.Scan() {
		if text := in.Text(); strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") || strings.HasPrefix(text, "SIG") {
			line = text
		}
	}
	return line, at, in.Err()
}
