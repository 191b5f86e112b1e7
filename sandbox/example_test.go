//go:build unix

package sandbox_test

import (
	"context"
	"fmt"
	"os"

	"github.com/stonelayer/stone/sandbox"
)

func Example() {
	dir, err := os.MkdirTemp("", "project-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	// Unconfined lets the example run everywhere. Leave it out in your programs.
	p := sandbox.Policy{Writable: []string{dir}, Limits: sandbox.Limits{Processes: 50}, Method: sandbox.Unconfined}
	cmd := sandbox.Command(context.Background(), p, "/bin/sh", "-c", "echo hello > greeting; cat greeting; exit 3")
	cmd.Dir = dir
	out, err := cmd.Output(64 << 10)
	fmt.Print(out)
	fmt.Println(err)
	// Output:
	// hello
	// exit status 3
}
