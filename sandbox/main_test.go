//go:build unix

package sandbox_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// roles are the other roles of this test program: a program that runs a command, or
// the command itself.
var roles = map[string]func() error{}

// Commands leave no goroutines in the program.
func TestMain(m *testing.M) {
	if role := roles[os.Getenv("SANDBOX_ROLE")]; role != nil {
		if err := role(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
