package journal_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/journaltest"
)

func TestMemory(t *testing.T) {
	journaltest.TestJournal(t, func() func() journal.Journal {
		memory := new(journal.Memory)
		return func() journal.Journal { return memory }
	})
}

func Example() {
	greeting := dag.NewType[string]("greeting")
	greet := stone.Func0("greet", greeting, func(context.Context) (string, error) {
		fmt.Println("working")
		return "hello", nil
	})
	var memory journal.Memory
	for range 2 {
		result, err := stone.Run(context.Background(), greet, stone.Config{RunID: "r1", Recorder: &memory})
		fmt.Println(result.Node.Text(), err)
	}
	// Output:
	// working
	// hello <nil>
	// hello <nil>
}
