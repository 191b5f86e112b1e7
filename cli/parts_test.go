package cli_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli"
	server "github.com/stonelayer/stone/cli/serve"
	"github.com/stonelayer/stone/internal/display"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/x/acp"
	"github.com/stonelayer/stone/x/batch"
	"github.com/stonelayer/stone/x/cel"
	evals "github.com/stonelayer/stone/x/eval/commands"
	"github.com/stonelayer/stone/x/evidence"
	"github.com/stonelayer/stone/x/kpi"
	"github.com/stonelayer/stone/x/lab"
	"github.com/stonelayer/stone/x/marks"
	"github.com/stonelayer/stone/x/mcp"
	mcpserver "github.com/stonelayer/stone/x/mcp/server"
	"github.com/stonelayer/stone/x/otlp"
	"github.com/stonelayer/stone/x/retrieve/commands"
	indexes "github.com/stonelayer/stone/x/retrieve/postgres"
	"github.com/stonelayer/stone/x/retrieve/search"
	"github.com/stonelayer/stone/x/solve/sat"
	"github.com/stonelayer/stone/x/solve/uci"
)

var parts = []cli.Part{lab.Part, marks.Part, otlp.Part, batch.Part, evidence.Part, acp.Part, cel.Part, mcp.Part, mcpserver.Part, sat.Part, search.Part, uci.Part, server.Part, evals.Part, kpi.Part, commands.Part, postgres.Part, indexes.Part, display.Screen(noScreen)}

func noScreen(context.Context, display.Config) (stone.Result, error) {
	return stone.Result{}, errors.New("there is no screen in this test")
}

// A command of a part that is not linked says which part has it.
func TestCommandsOfOtherParts(t *testing.T) {
	for line, want := range map[string]string{
		"eval":              "pass cli.Main the part of package github.com/stonelayer/stone/x/eval/commands, or the parts of cli/all for all",
		"eval --data x.csv": "pass cli.Main the part of package github.com/stonelayer/stone/x/eval/commands, or the parts of cli/all for all",
		"eval --help":       "pass cli.Main the part of package github.com/stonelayer/stone/x/eval/commands, or the parts of cli/all for all",
		"acp":               "pass cli.Main the parts of packages github.com/stonelayer/stone/cli/serve and github.com/stonelayer/stone/x/acp, or the parts of cli/all for all",
		"index":             "pass cli.Main the part of package github.com/stonelayer/stone/x/retrieve/commands, or the parts of cli/all for all",
		"elsewhere":         "see prog --help",
	} {
		var errs bytes.Buffer
		args := strings.Fields(line)
		code := cli.Run(t.Context(), cli.Config{Pipeline: stone.Seq("hello"), Name: "prog", Args: args, Stderr: &errs})
		if want = "Error: unknown command \"" + args[0] + "\" for prog: " + want + "\n"; code != cli.Usage || errs.String() != want {
			t.Errorf("%s: exit code %d, %s", line, code, errs.String())
		}
	}
}
