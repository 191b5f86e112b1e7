//go:build unix

package confine_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Nothing of a command is left in the program either.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
