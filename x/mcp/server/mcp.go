package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/serve"
)

// Config configures how pipelines are served. The zero value is valid.
type Config struct {
	// Wait is how long a call waits for its run before it returns the run's id, at most a minute. Zero means 50 s, because many
	// clients give up after a minute.
	Wait time.Duration
	// ModelMayAnswer lets the client's model answer questions itself, with the tool run_answer. Questions guard the model's
	// actions, so by default run_answer only makes the client ask its user.
	ModelMayAnswer bool
	// By identifies the client of Serve in recorded answers, as in "user ada". Mount does not use it, because the server
	// identifies the callers.
	By string
}

// Part adds the command mcp to programs that contain the part of package cli/serve, and the protocol at /mcp to their servers:
//
//	func main() { cli.Main(Pipeline, serve.Part, server.Part) }
var Part = inside.Protocol{
	Mounts: func(o inside.Options) map[string]serve.Mount {
		return map[string]serve.Mount{"/mcp": Mount(Config{ModelMayAnswer: o.ModelMayAnswer})}
	},
	Command: "mcp",
	Client: func(ctx context.Context, of *serve.Server, o inside.Options, in io.Reader, out io.Writer) error {
		return Serve(ctx, of, Config{By: o.By, ModelMayAnswer: o.ModelMayAnswer}, in, out)
	},
}

// maxMessage is the maximum size of a client's message in bytes.
const maxMessage = 8 << 20

// A server serves the pipelines of a serve.Server.
type server struct {
	*sdk.Server
	wait time.Duration
	open bool        // the model may answer
	gone func() bool // reports whether the client or the server has ended
}

// Mount returns a mount that serves the pipelines over streamable HTTP.
func Mount(cfg Config) serve.Mount {
	return func(of *serve.Server) (serve.Handler, error) {
		s, err := newServer(of, cfg)
		if err != nil {
			return nil, err
		}
		h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.Server }, &sdk.StreamableHTTPOptions{
			Stateless:                    true,
			PropagateRequestCancellation: true,
			MaxRequestBodyBytes:          maxMessage,
			DisableLocalhostProtection:   true, // the serve.Server checks the host
		})
		return func(w http.ResponseWriter, r *http.Request, who serve.Principal) {
			h.ServeHTTP(w, r.WithContext(withClient(r.Context(), clientOf(of, who))))
		}, nil
	}
}

// Serve serves the pipelines to one client, which writes to in and reads from out, until the client disconnects or ctx is done.
// The client has all permissions. Most programs pass their standard input and output. When Serve returns, a read of in may still
// be in progress.
func Serve(ctx context.Context, of *serve.Server, cfg Config, in io.Reader, out io.Writer) error {
	s, err := newServer(of, cfg)
	if err != nil {
		return err
	}
	var gone atomic.Bool
	s.gone = func() bool { return gone.Load() || ctx.Err() != nil }
	from, to := io.Pipe() // unlike in, a pipe can be closed while it is being read
	go func() {
		_, err := io.Copy(to, in)
		gone.Store(true)
		to.CloseWithError(err)
	}()
	defer from.Close()
	err = s.Run(withClient(ctx, clientOf(of, serve.Principal{By: cfg.By})), &sdk.IOTransport{Reader: from, Writer: unclosed{out}, MaxLineLength: maxMessage})
	if gone.Load() || ctx.Err() != nil {
		return nil
	}
	return err
}

// unclosed is a writer that Close does not close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func newServer(of *serve.Server, cfg Config) (*server, error) {
	capabilities := &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}}
	capabilities.AddExtension(tasksExtension, nil)
	s := &server{
		gone: func() bool { return false }, open: cfg.ModelMayAnswer,
		wait: min(cmp.Or(cfg.Wait, 50*time.Second), time.Minute),
		Server: sdk.NewServer(&sdk.Implementation{Name: "stone", Title: "Stone", Version: version()}, &sdk.ServerOptions{
			Capabilities: capabilities,
			SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
				c.CacheScope = "private" // callers of different tenants see different contents
			},
			Instructions: "Each pipeline is a tool. A call that returns a run which is not done continues: wait for it with run_result. A person answers its questions: see run_answer.",
		}),
	}
	all, err := of.Pipelines()
	if err != nil {
		return nil, err
	}
	s.AddReceivingMiddleware(received)
	s.addHelpers()
	known := map[string]bool{}
	for _, described := range all {
		tool, p, err := toolOf(described)
		switch {
		case err != nil:
			return nil, err
		case helperNames[tool.Name]:
			return nil, fmt.Errorf("mcp: a pipeline has the name %q of a tool for runs: give it another Name", described.Name)
		case known[tool.Name]:
			return nil, fmt.Errorf("mcp: the pipeline %q and another one would be the tool %q: give it another Name", described.Name, tool.Name)
		}
		known[tool.Name] = true
		s.AddTool(tool, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return s.call(ctx, req, p)
		})
	}
	s.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "node", Title: "Node of a run", URITemplate: nodeURI("{run}", "{node}"),
		Description: "The content of a node that a run has made: text, or JSON.",
	}, s.readNode)
	return s, s.addTasks()
}

// received handles what handlers of the SDK cannot: it returns tasks from tool calls, checks a header of task requests, and
// rejects the methods of prompts.
func received(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case "prompts/list", "prompts/get", "completion/complete":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the server has no prompts"}
		}
		switch params := req.GetParams().(type) {
		case *taskParams:
			if extra := req.GetExtra(); extra != nil && extra.Header.Get("Mcp-Name") != "" && extra.Header.Get("Mcp-Name") != params.ID {
				return nil, &jsonrpc.Error{Code: sdk.CodeHeaderMismatch, Message: "the header Mcp-Name is not the id of the task"}
			}
		case *sdk.CallToolParamsRaw:
			given := new(task)
			res, err := next(context.WithValue(ctx, taskKey{}, given), method, req)
			if err == nil && given.ID != "" {
				return given, nil
			}
			return res, err
		}
		return next(ctx, method, req)
	}
}

// version returns the version of this module that the program contains.
func version() string {
	const module = "github.com/stonelayer/stone"
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Path == module {
			return info.Main.Version
		}
		for _, m := range info.Deps {
			if m.Path == module {
				return m.Version
			}
		}
	}
	return "(devel)"
}

// client calls the API on behalf of a caller.
type client struct {
	inside.Client
	model inside.Client // like Client, but records answers as given by the caller's model
}

func clientOf(of *serve.Server, who serve.Principal) client {
	model := who
	model.By = "the model of " + cmp.Or(who.By, who.Name, "an unknown client")
	return client{inside.As(of, who), inside.As(of, model)}
}

type clientKey struct{}

func withClient(ctx context.Context, c client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// callerOf returns a client for the caller of a request.
func callerOf(ctx context.Context) client { return ctx.Value(clientKey{}).(client) }
