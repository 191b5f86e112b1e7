package load

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A program does not outlive the process that runs it, even if that is killed with SIGKILL.
func TestProgramDiesWithItsStarter(t *testing.T) {
	const role = "STONE_LOAD_STARTER"
	if os.Getenv(role) != "" {
		_, err := Program("/bin/sh").Run("sh", []string{"-c", "echo begun; exec sleep 600"}, nil, os.Stdout, os.Stderr, nil)
		t.Fatal(err)
	}
	starter := exec.Command(os.Args[0], "-test.run=^TestProgramDiesWithItsStarter$")
	starter.Env = append(os.Environ(), role+"=yes")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	starter.Stdout = in
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil || line != "begun\n" {
		t.Fatalf("the program printed %q: %v", line, err)
	}
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait() // it was killed
	if err := out.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil { // the program has the other end
		t.Errorf("the program runs on and printed %q: %v", rest, err)
	}
}
