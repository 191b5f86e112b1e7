package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/journal"
)

// Supervisors give up on exit code 2, which means wrong usage.
func TestUnavailableDatabase(t *testing.T) {
	t.Setenv("STONE_DB", "") // which the flag --db sets
	for _, c := range []struct {
		err  error
		want int
	}{
		{fmt.Errorf("database does not answer: %w", journal.ErrUnavailable), cli.Failed},
		{errors.New("database does not exist"), cli.Usage},
	} {
		down := stores.Server{
			Open:   func(context.Context, string, string) (stores.Store, error) { return nil, c.err },
			Secret: func(string) string { return "" },
		}
		for _, command := range []string{"runs", "show", "resume"} {
			args := []string{command, "--db", "postgres://u@127.0.0.1:1/n"}
			if command != "runs" {
				args = append(args, "r")
			}
			var errs bytes.Buffer
			code := cli.Run(t.Context(), cli.Config{Parts: []cli.Part{down}, Pipeline: cli.FromArgument, Name: "stone", Args: args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &errs})
			if code != c.want || !strings.Contains(errs.String(), c.err.Error()) {
				t.Errorf("%s with %v: exit code %d, want %d\n%s", command, c.err, code, c.want, errs.String())
			}
		}
	}
}
