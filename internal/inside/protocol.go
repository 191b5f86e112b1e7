package inside

import (
	"context"
	"io"

	"github.com/stonelayer/stone/serve"
)

// A Protocol is a part for programs whose server speaks another protocol.
type Protocol struct {
	// Mounts returns handlers keyed by patterns for http.ServeMux, as in serve.Config. It may be nil.
	Mounts func(Options) map[string]serve.Mount
	// Command is the command that serves one client over standard input and output by calling Client: mcp or acp.
	Command string
	// Client serves until its client ends or ctx is done.
	Client func(ctx context.Context, of *serve.Server, o Options, in io.Reader, out io.Writer) error
}

// Options are what the command line says about the clients of a protocol.
type Options struct {
	By             string // the user for whom Client serves, such as "user ada"
	ModelMayAnswer bool   // the client's model may answer questions
}

// Part makes a Protocol a part of a program; see cli.Part.
func (Protocol) Part() {}

// Protocol distinguishes it from other parts.
func (Protocol) Protocol() {}
