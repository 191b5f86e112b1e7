package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// The second run resumes the first, and does not ask again.
func Example() {
	answer := dag.NewType[string]("answer")
	ask := stone.Func0("ask", answer, func(context.Context) (string, error) {
		fmt.Println("asking")
		return "42", nil
	})
	dir, err := os.MkdirTemp("", "stone")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 { // as two processes would
		db, err := sqlite.Open(filepath.Join(dir, "stone.db"), sqlite.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		result, err := stone.Run(context.Background(), ask, stone.Config{RunID: "nightly", Recorder: journal.Keep(db, journal.Options{})})
		fmt.Println(result.Node.Text(), err, db.Close())
	}
	// Output:
	// asking
	// 42 <nil> <nil>
	// 42 <nil> <nil>
}
