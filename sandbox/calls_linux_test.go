package sandbox

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stonelayer/stone/internal/test/need"
)

var update = flag.Bool("update", false, "write the verdicts about system calls")

// verdict says what the rules do with a system call: allow, deny, missing (as if the kernel did not have it), or depends.
func verdict(rules []rule, call uint32) string {
	if call > lastKnown {
		return "missing"
	}
	i := slices.IndexFunc(rules, func(r rule) bool { return r.call == call })
	switch {
	case i < 0:
		return "allow"
	case len(rules[i].body) > 1:
		return "depends"
	case rules[i].body[0] == denied:
		return "deny"
	}
	return "missing"
}

// callsOf returns the kernel's system call table for an architecture.
func callsOf(t *testing.T, arch string) map[string]uint32 {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		need.Absent(t, "the go command does not say where golang.org/x/sys is: "+err.Error())
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "zsysnum_linux_"+arch+".go"))
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]uint32{}
	for _, m := range regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s*= (\d+)`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseUint(m[2], 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		if m[1] != "ARCH_SPECIFIC_SYSCALL" { // where such calls begin
			calls[strings.ToLower(m[1])] = uint32(n)
		}
	}
	return calls
}

// TestSystemCalls: the table in testdata has each system call of amd64 and arm64 with what the filter does with it, under Landlock and
// under Bubblewrap, without a network. A call that a later kernel adds is in no table until somebody has decided.
func TestSystemCalls(t *testing.T) {
	const file = "testdata/calls.txt"
	landlock := append(append(underLandlock(), always()...), sockets(false)...)
	bubblewrap := append(always(), sockets(true)...)
	own := callsOf(t, runtime.GOARCH)
	if *update {
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(own)) {
			lines = append(lines, fmt.Sprintf("%-28s %-8s %s", name, verdict(landlock, own[name]), verdict(bubblewrap, own[name])))
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		table[words[0]] = words[1:]
	}
	for name, call := range own {
		if got := []string{verdict(landlock, call), verdict(bubblewrap, call)}; !slices.Equal(got, table[name]) {
			t.Errorf("%s: the filter says %q, the table %q: decide what the filter does, then -update", name, got, table[name])
		}
	}
	for _, arch := range []string{"amd64", "arm64"} {
		for name := range callsOf(t, arch) {
			if table[name] == nil {
				t.Errorf("%s of %s is not in the table", name, arch)
			}
		}
	}
}

// Objects of System V belong to the user, not to the command: no call of theirs is allowed under Landlock.
func TestNoSystemV(t *testing.T) {
	calls := 0
	for name, call := range callsOf(t, runtime.GOARCH) {
		if regexp.MustCompile("^(shm|sem|msg)").MatchString(name) {
			calls++
			if got := verdict(underLandlock(), call); got != "deny" {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	if calls != 12 {
		t.Errorf("%d calls, want 12", calls)
	}
	if verdict(underLandlock(), unix.SYS_FANOTIFY_INIT) != "deny" {
		t.Error("fanotify is allowed")
	}
}
