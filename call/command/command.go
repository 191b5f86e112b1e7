package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/sandbox"
)

// Config specifies the program and how it is run. With the zero Config, every invocation fails with "runtime/unavailable".
type Config struct {
	// Command contains the absolute path of the program, followed by its arguments.
	Command []string
	// Dir is the working directory. By default, it is the first directory in scope, or a temporary directory if the scope lists
	// none. If the scope does not limit directories, the default is the working directory of this process.
	Dir string
	// Env lists the names of environment variables to pass on, in addition to PATH, TZ and the locale variables. HOME and TMPDIR
	// are set to a temporary directory, which is deleted afterwards.
	Env []string
	// Scope limits what the program may reach. The program must be in Process. FS lists the directories that it may change; apart
	// from these, it sees only the system's programs. A program cannot be limited to individual servers, so Net must be nil, or
	// empty to deny the network. If Net is nil, a program that is limited to directories can reach all servers except those on
	// this machine's loopback interface; see sandbox.Policy.
	Scope call.Scope
	// Loopback lets a program that is limited to directories also reach servers on the loopback interface.
	Loopback bool
	// Limits restricts the program's resources.
	Limits sandbox.Limits
	// MaxOutput is the maximum size of the program's standard output, in bytes; 8 MiB by default.
	MaxOutput int
}

// Check returns an error if the configuration is invalid.
func (c Config) Check() error {
	if len(c.Command) == 0 {
		return errors.New("command: no program: set Command to the absolute path of one")
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		return fmt.Errorf("command: Dir %q is not an absolute path", c.Dir)
	}
	if c.MaxOutput < 0 {
		return errors.New("command: MaxOutput is negative: want zero for the default")
	}
	for _, name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("command: Env has %q: want the name of a variable", name)
		}
	}
	if len(c.Scope.Net) > 0 {
		return errors.New("command: a program cannot be limited to single servers: leave scope.net out, or make it empty for no network")
	}
	return errors.Join(c.Scope.Check(), c.Scope.Process.Check(c.Command[0]))
}

// New returns a capability of kind command, which runs the program. Its id defaults to the program's name. It needs the effect
// process.
func New(m call.Metadata, c Config) call.Capability {
	m = m.Needing(effect.Process)
	m.Kind = cmp.Or(m.Kind, "command")
	if m.ID == "" {
		m.ID = "command"
		if len(c.Command) > 0 {
			m.ID = filepath.Base(c.Command[0])
		}
	}
	invalid := c.Check()
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if invalid != nil {
			return nil, &call.Error{Type: reasons.Unavailable, Message: invalid.Error(), Cause: invalid}
		}
		envelope, err := json.Marshal(*req)
		if err != nil {
			return nil, &call.Error{Type: reasons.InvalidRequest, Message: "the request has no JSON: " + err.Error(), Cause: err}
		}
		out, method, err := c.run(ctx, envelope, req.Voice)
		if err != nil {
			return nil, err
		}
		reply, err := call.ReadOutput([]byte(redact.From(ctx).Text(string(out))))
		if err == nil {
			reply.Usage.Sandbox = string(method)
		}
		return reply, err
	}}
}

// Check returns a check that runs a program and passes if the program exits with status 0. Wrap it with call.Paid so that a
// resumed run does not repeat it.
func Check(c Config) call.Check {
	invalid := c.Check()
	return func(ctx context.Context, s call.Subject) error {
		if invalid != nil {
			return invalid
		}
		var subject struct {
			Request *call.Request `json:"request,omitempty"`
			Out     call.JSON     `json:"out"`
		}
		subject.Request, subject.Out = s.Request, s.Out
		text, err := json.Marshal(subject)
		if err != nil {
			return err
		}
		_, _, err = c.run(ctx, text, nil)
		return err
	}
}
