package cli_test

import (
	"context"
	"fmt"
	"os"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
)

// A program whose main function calls cli.Main(Pipeline) has all commands. Run executes the same command line with explicit
// arguments and streams.
func ExampleRun() {
	greeting := dag.NewType[string]("greeting")
	pipeline := func(args []string) (stone.Ashlar, error) {
		if len(args) != 1 {
			return stone.Ashlar{}, fmt.Errorf("want one name, got %q", args)
		}
		return stone.Func0("greet", greeting, func(context.Context) (string, error) { return "hello, " + args[0], nil }), nil
	}
	code := cli.Run(context.Background(), cli.Config{
		Pipeline: pipeline,
		Name:     "greet",
		Args:     []string{"run", "--quiet", "--no-db", "--", "Ada"},
		Stderr:   os.Stdout,
	})
	fmt.Println("exit code", code)

	code = cli.Run(context.Background(), cli.Config{Pipeline: pipeline, Name: "greet", Args: []string{"run"}, Stderr: os.Stdout})
	fmt.Println("exit code", code)
	// Output:
	// hello, Ada
	// exit code 0
	// Error: want one name, got []
	// exit code 2
}
