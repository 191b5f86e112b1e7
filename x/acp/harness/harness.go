package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/sandbox"
)

// Config configures the program. Command and Dir are required: without them, calls fail with "runtime/unavailable".
type Config struct {
	// Command is the absolute path of the program, followed by its arguments.
	Command []string
	// Dir is the absolute path of a directory in a git repository. The program works on a clone of its commit HEAD.
	Dir string
	// Mode is the session mode to select; "" means the program's default mode.
	Mode string
	// Env lists the names of additional environment variables to pass on, such as ANTHROPIC_API_KEY. HOME is set to a temporary
	// directory.
	Env []string
	// Sandbox grants the program access to further files, besides the clone, and to the network.
	Sandbox sandbox.Policy
	// Allow lists the kinds of tool calls, such as "read" or "edit", that are permitted without asking. The kind of a call is
	// stated by the program itself.
	Allow []string
	// Test is a command, such as ["go", "test", "./..."], that runs in the clone after the turn, in the same sandbox. Empty means
	// no command.
	Test []string
}

// Check returns an error if the configuration is invalid.
func (c Config) Check() error {
	switch {
	case len(c.Command) == 0 || !filepath.IsAbs(c.Command[0]):
		return errors.New("harness: no program: set Command to the absolute path of one")
	case !filepath.IsAbs(c.Dir):
		return fmt.Errorf("harness: Dir %q is not an absolute path", c.Dir)
	}
	return nil
}

// New returns a capability of the kind acp that runs the configured program. If m.ID is empty, the id is the name of the program.
// The capability needs the effect process and, if Sandbox permits network access, net.
func New(m call.Metadata, c Config) call.Capability {
	m = m.Needing(effect.Process)
	if c.Sandbox.Network || c.Sandbox.Method == sandbox.Unconfined {
		m = m.Needing(effect.Net)
	}
	m.Kind = cmp.Or(m.Kind, "acp")
	if m.ID == "" && len(c.Command) > 0 {
		m.ID = filepath.Base(c.Command[0])
	}
	invalid := c.Check()
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if invalid != nil {
			return nil, unavailable("", invalid)
		}
		return c.invoke(ctx, req)
	}}
}

// An answer is the output of a reply.
type answer struct {
	Text  string   `json:"text"`
	Base  string   `json:"base"`
	Diff  string   `json:"diff"`
	Tests *verdict `json:"tests,omitempty"`
}

type verdict struct {
	Passed bool   `json:"passed"`
	Output string `json:"output"`
}

// Maximum sizes in bytes. Text and diff must fit into an envelope.
const (
	maxAnswer = call.MaxEnvelope / 4
	maxTests  = 16 << 10
)

func (c Config) invoke(ctx context.Context, req *call.Request) (*call.Reply, error) {
	secrets := redact.From(ctx)
	secrets.NoteEnv(c.Env)
	text, before, err := promptOf(req)
	if err != nil {
		return nil, &call.Error{Type: reasons.InvalidRequest, Message: err.Error(), Cause: err}
	}
	cl, err := newClone(ctx, c.Dir, before)
	if err != nil {
		return nil, unavailable("the repository cannot be cloned: ", err)
	}
	defer cl.remove()
	policy, err := c.policy(cl)
	if err != nil {
		return nil, unavailable("the program cannot be confined: ", err)
	}
	t := &turn{cfg: c, req: req, ctx: ctx, secrets: secrets, clone: cl}
	err = t.run(policy, text)
	usage := t.spent()
	usage.Sandbox = string(policy.Method)
	if err != nil {
		if e, ok := errors.AsType[*call.Error](err); ok {
			e.Usage = usage
		}
		return nil, err
	}
	a := answer{Text: t.text.String(), Base: cl.base}
	if a.Diff, err = cl.diff(ctx); err != nil {
		return nil, &call.Error{Type: reasons.InvokeFailed, Message: "the edits cannot be read: " + err.Error(), Cause: err, Usage: usage}
	}
	if len(c.Test) > 0 {
		if a.Tests, err = c.test(ctx, policy, cl.dir); err != nil {
			if e, ok := errors.AsType[*call.Error](err); ok {
				e.Usage = usage // the turn has been paid for
			}
			return nil, err
		}
	}
	out, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return &call.Reply{Out: call.JSON(secrets.Text(string(out))), Usage: usage}, nil
}

// policy returns the sandbox policy for a clone.
func (c Config) policy(cl *clone) (p sandbox.Policy, err error) {
	p = c.Sandbox
	p.Writable = append([]string{cl.dir}, p.Writable...)
	p.ReadOnly = append([]string{cl.objects}, p.ReadOnly...)
	if p.Method == "" {
		p.Method, err = sandbox.Find()
	}
	return p, err
}

// test runs the tests.
func (c Config) test(ctx context.Context, policy sandbox.Policy, dir string) (*verdict, error) {
	cmd := sandbox.Command(ctx, policy, c.Test[0], c.Test[1:]...)
	cmd.Dir, cmd.Env = dir, c.Env
	output, err := cmd.Output(maxTests)
	if err != nil && !errors.As(err, new(*sandbox.ExitError)) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, unavailable("the tests do not start: ", err)
	}
	if err != nil {
		output = strings.TrimSpace(output + "\n" + err.Error())
	}
	return &verdict{Passed: err == nil, Output: output}, nil
}

// TestsPass is the check tests-pass. It accepts an answer only if the tests that Config.Test ran have passed.
func TestsPass(_ context.Context, s call.Subject) error {
	var a answer
	switch err := json.Unmarshal(s.Out, &a); {
	case err != nil || a.Tests == nil:
		return errors.New("the answer has no tests: add :test to the capability, such as [\"go\" \"test\" \"./...\"]")
	case !a.Tests.Passed:
		return fmt.Errorf("the tests fail:\n%s", a.Tests.Output)
	}
	return nil
}

// promptOf returns the prompt of a request. If the request is to repair an answer, it also returns the rejected answer.
func promptOf(req *call.Request) (text string, before *answer, err error) {
	var input struct {
		Prompt string `json:"prompt"`
	}
	if json.Unmarshal(req.Input, &input) == nil && input.Prompt != "" {
		text = input.Prompt
	} else {
		text = fmt.Sprintf("Do the task %q with this input:\n%s", req.Intent, req.Input)
	}
	about := map[string]json.RawMessage{}
	if len(req.Context) > 0 {
		if err = json.Unmarshal(req.Context, &about); err != nil {
			return "", nil, fmt.Errorf("the context is no object: %w", err)
		}
	}
	var repair struct {
		Out     *answer `json:"out"`
		Failure struct {
			Message string `json:"message"`
		} `json:"failure"`
		Failed []struct {
			Name string `json:"check"`
			Why  string `json:"why"`
		} `json:"failed"`
	}
	if again := about["repair"]; again != nil && json.Unmarshal(again, &repair) == nil {
		before = repair.Out
		text += "\n\nYour earlier edits are in the files. They were rejected: " + repair.Failure.Message
		for _, f := range repair.Failed {
			text += fmt.Sprintf("\n- %s: %s", f.Name, f.Why)
		}
		delete(about, "repair")
	}
	if len(about) > 0 {
		rest, err := json.Marshal(about)
		if err != nil {
			return "", nil, err
		}
		text += "\n\nContext:\n" + string(rest)
	}
	if len(req.Constraints) > 0 && !slices.Equal(req.Constraints, call.JSON("{}")) {
		text += "\n\nConstraints:\n" + string(req.Constraints)
	}
	return text, before, nil
}

func unavailable(what string, err error) error {
	return &call.Error{Type: reasons.Unavailable, Message: what + err.Error(), Cause: err}
}
