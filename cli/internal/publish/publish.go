// Package publish describes the server to package cli, so that package cli can start the server without linking it.
package publish

import (
	"context"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/cli/internal/token"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/batches"
	"github.com/stonelayer/stone/internal/marked"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// Config specifies what to publish and where. It corresponds to serve.Config.
type Config struct {
	Listener          net.Listener
	Ready             func() // called when the server starts to accept requests; may be nil
	Journal           journal.Journal
	Pipelines         []Pipeline
	Applicator        *call.Applicator // nil without a configuration
	Grant             []string
	Policy            marked.Policy
	Batches           *batches.Sender // nil if batches are not supported
	Embedder          llm.Embedder    // nil without an embedder
	Limits            budget.Limits
	Budgets           []budget.Rule
	Webhooks          []Webhook
	Live, IgnoreTools []string
	Tokens            *token.File // nil with Inspect
	Models            bool        // the model of an MCP client is allowed to answer questions
	By                string      // the user, to whom answers with Inspect and over MCP are attributed
	URL               string      // address at which people reach the pages
	Adopt             func(journal.RunInfo) string
	Inspect           bool   // only show runs; do not start or resume any
	Answer            bool   // with Inspect, record answers to questions
	First             string // token that may do everything as long as Tokens is empty
	Open              bool   // if there are no tokens, everyone may do everything
	Hosts             []string
	Design            bool
	Base              func() context.Context
	Grace             time.Duration
	Watch             func(journal.RunInfo) event.Watcher
	Drain             <-chan struct{} // drains the server when closed
	Warn              func(string)    // reports problems
	Log               slog.Handler    // receives log records of the server; if nil, each is passed to Warn
	Protocols         []Protocol      // additional protocols to mount
}

// A Protocol is a part that adds mounts to the server; see package cli/serve.
type Protocol interface {
	Part()
	Protocol() string // the command for one client, such as mcp; "" for none
}

// Pipeline is a published pipeline.
type Pipeline struct {
	Name        string
	Description string
	Result      string
	Ashlar      stone.Ashlar
	Grant       []string
	Limits      budget.Limits
}

// Webhook is notified when runs end or wait.
type Webhook struct {
	Name      string
	URL       string
	Secrets   []string
	Pipelines []string
	Tenant    string
	Private   bool
}

// A Server provides the functions of package serve, which publish pipelines and show runs.
type Server struct {
	// Serve publishes pipelines until ctx is done or the server is drained.
	Serve func(context.Context, Config) error
	// Client publishes pipelines to a single client, for the commands mcp and acp. It returns when the client disconnects, ctx is
	// done or the server is drained. It needs no Listener.
	Client func(ctx context.Context, command string, cfg Config, in io.Reader, out io.Writer) error
	// HTML writes a run as a single HTML file.
	HTML func(ctx context.Context, w io.Writer, j journal.Journal, run string) error
	// Chat returns an agent without tools. Its turns are calls to an intent or a capability.
	Chat func(name string, app *call.Applicator, spec call.Spec) stone.Ashlar
}

// Part marks a Server as a part of a program; see cli.Part.
func (*Server) Part() {}
