// Package publish describes the server to package cli, which starts it without linking it.
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

// Config describes what to publish and where, like serve.Config.
type Config struct {
	Listener          net.Listener
	Ready             func() // if not nil, called once the server accepts requests
	Journal           journal.Journal
	Pipelines         []Pipeline
	Applicator        *call.Applicator // nil without a configuration
	Grant             []string
	Policy            marked.Policy
	Batches           *batches.Sender // nil for none
	Embedder          llm.Embedder    // nil without one
	Limits            budget.Limits
	Budgets           []budget.Rule
	Webhooks          []Webhook
	Live, IgnoreTools []string
	Tokens            *token.File // nil with Inspect
	Models            bool        // the model of an MCP client may answer questions
	By                string      // the user, who answers with Inspect and over MCP
	URL               string      // address at which people reach the pages
	Adopt             func(journal.RunInfo) string
	Inspect           bool   // only show runs, without starting or resuming any
	Answer            bool   // with Inspect, record answers to questions
	First             string // a token that may do everything while Tokens is empty
	Open              bool   // without tokens, everyone may do everything
	Hosts             []string
	Design            bool
	Base              func() context.Context
	Grace             time.Duration
	Watch             func(journal.RunInfo) event.Watcher
	Drain             <-chan struct{} // ends the server gently
	Warn              func(string)    // reports problems
	Log               slog.Handler    // log of the server; nil passes each record to Warn
	Protocols         []Protocol      // protocols to mount in addition
}

// A Protocol is a part with mounts for the server; see package cli/serve.
type Protocol interface {
	Part()
	Protocol()
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

// A Server publishes pipelines, and shows runs.
type Server struct {
	// Serve publishes until ctx is done or the server is drained.
	Serve func(context.Context, Config) error
	// Client publishes to one client of the command mcp or acp until the client ends, ctx is done or the server is drained. It needs
	// no Listener.
	Client func(ctx context.Context, command string, cfg Config, in io.Reader, out io.Writer) error
	// HTML writes a run as one file for a browser.
	HTML func(ctx context.Context, w io.Writer, j journal.Journal, run string) error
	// Chat returns an agent without tools that calls an intent or a capability for its turns.
	Chat func(name string, app *call.Applicator, spec call.Spec) stone.Ashlar
}

// Part makes a Server a part of a program; see cli.Part.
func (*Server) Part() {}
