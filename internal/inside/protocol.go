package inside

import (
	"context"
	"io"

	"github.com/stonelayer/stone/serve"
)

// A Protocol is a part for programs whose server also supports another protocol.
type Protocol struct {
	// Mounts returns handlers keyed by patterns for http.ServeMux, as in serve.Config. It may be nil.
	Mounts func(Options) map[string]serve.Mount
	// Command is the name of the command, mcp or acp, that serves one client over standard input and output. The command calls
	// Client.
	Command string
	// Client serves a client until the client disconnects or ctx is done.
	Client func(ctx context.Context, of *serve.Server, o Options, in io.Reader, out io.Writer) error
}

// Options are the settings from the command line that a protocol's Client receives.
type Options struct {
	By             string // the user to whom answers are attributed, such as "user ada"
	ModelMayAnswer bool   // whether the client's model may answer questions
}

// Part makes a Protocol usable as a part of a program; see cli.Part.
func (Protocol) Part() {}

// Protocol does nothing. It distinguishes a Protocol from other parts.
func (p Protocol) Protocol() string { return p.Command }
