package command_test

import (
	"testing"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/command"
)

func BenchmarkCommand(b *testing.B) {
	c := command.New(call.Metadata{}, command.Config{Command: []string{"/bin/echo", "1"}})
	for b.Loop() {
		if _, err := c.Invoke(b.Context(), &call.Request{Intent: "x/y"}); err != nil {
			b.Fatal(err)
		}
	}
}
