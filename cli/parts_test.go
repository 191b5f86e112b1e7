package cli_test

import (
	"context"
	"errors"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli"
	server "github.com/stonelayer/stone/cli/serve"
	"github.com/stonelayer/stone/internal/display"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/x/acp"
	"github.com/stonelayer/stone/x/batch"
	"github.com/stonelayer/stone/x/cel"
	"github.com/stonelayer/stone/x/evidence"
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

var parts = []cli.Part{lab.Part, marks.Part, otlp.Part, batch.Part, evidence.Part, acp.Part, cel.Part, mcp.Part, mcpserver.Part, sat.Part, search.Part, uci.Part, server.Part, commands.Part, postgres.Part, indexes.Part, display.Screen(noScreen)}

func noScreen(context.Context, display.Config) (stone.Result, error) {
	return stone.Result{}, errors.New("there is no screen in this test")
}
