package shell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/stonelayer/stone/tool/shell"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	// Unconfined lets the example run everywhere. Leave it out in your programs.
	session := shell.New(shell.Config{Dir: dir, Unconfined: true})
	defer session.Close()
	run := shell.Run(session) // for the Use list of an agent

	result, err := run.Tool.Run(context.Background(), json.RawMessage(`{"command":"echo built; echo careless >&2; exit 1"}`))
	fmt.Println(result.Text, err)
	// Output:
	// exit code: 1
	// stdout:
	// built
	// stderr:
	// careless
	//  <nil>
}
