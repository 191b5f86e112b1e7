// Package all contains every part of a program: the capability kinds, the screen, the server, document search, evaluations and
// PostgreSQL. The command stone is:
//
//	func main() { cli.Main(cli.FromArgument, all.Parts()...) }
//
// All parts together add about 35 modules. If a program needs only some parts, pass them individually, for example screen.Part.
package all

import (
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/cli/serve"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/x/acp"
	"github.com/stonelayer/stone/x/acp/harness"
	"github.com/stonelayer/stone/x/batch"
	"github.com/stonelayer/stone/x/cel"
	evals "github.com/stonelayer/stone/x/eval/commands"
	"github.com/stonelayer/stone/x/evidence"
	"github.com/stonelayer/stone/x/gateway"
	"github.com/stonelayer/stone/x/kpi"
	"github.com/stonelayer/stone/x/lab"
	"github.com/stonelayer/stone/x/marks"
	"github.com/stonelayer/stone/x/mcp"
	mcpserver "github.com/stonelayer/stone/x/mcp/server"
	"github.com/stonelayer/stone/x/otlp"
	"github.com/stonelayer/stone/x/retrieve/commands"
	indexes "github.com/stonelayer/stone/x/retrieve/postgres"
	"github.com/stonelayer/stone/x/retrieve/search"
	"github.com/stonelayer/stone/x/screen"
	"github.com/stonelayer/stone/x/solve/sat"
	"github.com/stonelayer/stone/x/solve/uci"
	"github.com/stonelayer/stone/x/ui"
)

// Parts returns all parts of Stone, to be passed to cli.Main. Each extra (a package below x that is a part) has one entry and one
// import in this file.
func Parts() []cli.Part {
	return []cli.Part{
		serve.Part, postgres.Part,
		cel.Part, mcp.Part, mcpserver.Part,
		screen.Part,
		acp.Part, harness.Part,
		ui.Part, gateway.Part,
		search.Part, commands.Part, indexes.Part,
		evals.Part, kpi.Part,
		sat.Part, uci.Part, marks.Part, lab.Part, otlp.Part, batch.Part, evidence.Part,
	}
}
