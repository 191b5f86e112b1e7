package pgtest

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const childEnv = "STONE_PGTEST_CHILD"

// TestChild is the process that panics.
func TestChild(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		return // TestServerEndsWithItsProgram starts it
	}
	s := New(t, "fsync=off")
	os.Stdout.WriteString("home " + s.home + "\n")
	panic("as a broken test does")
}

func TestServerEndsWithItsProgram(t *testing.T) {
	if os.Getenv("STONE_PG") == "" {
		_, err := programs()
		check(t, err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	home := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if after, ok := strings.CutPrefix(lines.Text(), "home "); ok {
			home = after
		}
	}
	if err := cmd.Wait(); err == nil || home == "" {
		t.Fatalf("the child ended with %v in %q, want a panic", err, home)
	}
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(home); os.IsNotExist(err) {
			return // which the shell removes when the server has ended
		}
		if time.Now().After(limit) {
			t.Fatal("the server of a program that panicked is still there after 30 s")
		}
	}
}
