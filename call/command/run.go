package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/confine"
)

const (
	defaultOutput = 8 << 20
	maxStderr     = 2048
)

// run gives the program its input and returns its output.
func (c Config) run(ctx context.Context, input []byte) ([]byte, error) {
	dir, remove, err := c.dir()
	if err != nil {
		return nil, unavailable("the program cannot work: ", err)
	}
	defer remove()
	method, policy, err := c.confinement(dir)
	if err != nil {
		return nil, unavailable("the program cannot be confined: ", err)
	}
	running, kill := context.WithCancel(ctx)
	defer kill()
	out, tail := &output{max: cmp.Or(c.MaxOutput, defaultOutput), full: kill}, &stderr{}
	cmd := exec.Command(c.Command[0], c.Command[1:]...)
	cmd.Dir, cmd.Env = dir, c.environment()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), out, tail
	err = confine.Run(running, method, policy, cmd)
	switch exit := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.over:
		return nil, &call.Error{Type: call.SchemaInvalid, Message: fmt.Sprintf("the program writes more than %d bytes", out.max)}
	case errors.As(err, &exit):
		return nil, &call.Error{Type: call.InvokeFailed, Message: "the program failed: " + exit.Error() + tail.String(), Cause: err}
	case err != nil:
		return nil, unavailable("the program does not start: ", err)
	}
	return out.text, nil
}

func unavailable(what string, err error) error {
	return &call.Error{Type: call.Unavailable, Message: what + err.Error(), Cause: err}
}

// dir returns where the program works, and what is done afterwards.
func (c Config) dir() (dir string, after func(), err error) {
	after = func() {}
	switch {
	case c.Dir != "":
		dir, err = c.Scope.FS.Resolve(c.Dir)
	case len(c.Scope.FS) > 0:
		dir, err = c.Scope.FS.Resolve(c.Scope.FS[0])
	case c.Scope.FS != nil:
		if dir, err = os.MkdirTemp("", "stone-command-"); err == nil {
			after = func() { os.RemoveAll(dir) }
			dir, err = filepath.EvalSymlinks(dir)
		}
	default:
		dir, err = os.Getwd()
	}
	return dir, after, err
}

// confinement is how the program is held to its scope. One that may reach whatever
// this program may is not confined.
func (c Config) confinement(dir string) (confine.Method, confine.Policy, error) {
	if c.Scope.FS == nil && c.Scope.Net == nil {
		return confine.Unconfined, confine.Policy{}, nil
	}
	method, err := confine.Find()
	if err != nil {
		return "", confine.Policy{}, err
	}
	policy := confine.Policy{Network: c.Scope.Net == nil, Writable: []string{dir}}
	for _, root := range c.Scope.FS {
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			return "", confine.Policy{}, err
		}
		policy.Writable = append(policy.Writable, root)
	}
	if c.Scope.FS == nil {
		policy.Writable = []string{"/"}
	}
	program, err := filepath.EvalSymlinks(c.Command[0])
	if err != nil {
		return "", confine.Policy{}, err
	}
	policy.ReadOnly = []string{c.Command[0], program}
	return method, policy, nil
}

func (c Config) environment() []string {
	env := []string{} // nil would mean all of ours
	for _, name := range c.Env {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// An output keeps what a program writes, up to its bound. It does not embed a
// buffer, whose ReadFrom would be used in place of Write.
type output struct {
	text []byte
	max  int
	over bool
	full func()
}

// Write never fails, so that what is too much is told as that.
func (o *output) Write(text []byte) (int, error) {
	kept := text[:min(len(text), o.max-len(o.text))]
	o.text = append(o.text, kept...)
	if len(kept) < len(text) {
		o.over = true
		o.full()
	}
	return len(text), nil
}

// A stderr keeps the end of what is written to it.
type stderr struct{ end []byte }

func (s *stderr) Write(text []byte) (int, error) {
	s.end = append(s.end, text...)
	if len(s.end) > 2*maxStderr {
		s.end = append(s.end[:0], s.end[len(s.end)-maxStderr:]...)
	}
	return len(text), nil
}

// String returns it in one line, with ": " in front.
func (s *stderr) String() string {
	text := strings.ToValidUTF8(string(s.end[max(0, len(s.end)-maxStderr):]), "")
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return ""
	}
	return ": " + text
}
