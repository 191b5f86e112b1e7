package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/sandbox"
)

const (
	defaultOutput = 8 << 20
	maxStderr     = 2048
)

// run runs the program with the given input and returns its output and the method that confined it. If voice is not nil, the
// output is streamed.
func (c Config) run(ctx context.Context, input []byte, voice *event.Voice) (text []byte, m sandbox.Method, err error) {
	dir, remove, err := c.dir()
	if err != nil {
		return nil, "", unavailable("the working directory cannot be prepared: ", err)
	}
	defer remove()
	policy := c.policy(dir)
	if policy.Method == "" {
		if policy.Method, err = sandbox.Find(); err != nil {
			return nil, "", unavailable("the program cannot be confined: ", err)
		}
	}
	text, err = c.start(ctx, policy, dir, input, voice)
	return text, policy.Method, err
}

func (c Config) start(ctx context.Context, policy sandbox.Policy, dir string, input []byte, voice *event.Voice) ([]byte, error) {
	running, kill := context.WithCancel(ctx)
	defer kill()
	secrets := redact.From(ctx)
	secrets.NoteEnv(c.Env)
	out, tail := &output{max: cmp.Or(c.MaxOutput, defaultOutput), full: kill, tell: call.VoiceWriter(voice)}, &stderr{}
	cmd := sandbox.Command(running, policy, c.Command[0], c.Command[1:]...)
	cmd.Dir, cmd.Env = dir, c.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), out, tail
	err := cmd.Run()
	switch exit := (*sandbox.ExitError)(nil); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.over:
		return nil, &call.Error{Type: reasons.SchemaInvalid, Message: fmt.Sprintf("the program wrote more than %d bytes", out.max)}
	case errors.As(err, &exit):
		return nil, &call.Error{Type: reasons.InvokeFailed, Message: "the program failed" + under(policy.Method) + ": " + exit.Error() + tail.String(secrets), Cause: err}
	case err != nil:
		return nil, unavailable("the program cannot be started: ", err)
	}
	_, err = io.WriteString(out.tell, "\n") // the last line may lack a line break
	return out.text, err
}

// under returns err with the method that confined the program added, because the program may have failed due to an access that
// the method denies.
func under(m sandbox.Method) string {
	if m == sandbox.Unconfined {
		return ""
	}
	return " under " + string(m)
}

func unavailable(what string, err error) error {
	return &call.Error{Type: reasons.Unavailable, Message: what + err.Error(), Cause: err}
}

// dir returns the working directory of the program, and a function to call when the program has ended, which removes temporary
// directories.
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

// policy returns the sandbox policy that confines the program to its scope. If the scope has no limits, the policy does not
// confine the program.
func (c Config) policy(dir string) sandbox.Policy {
	p := sandbox.Policy{Limits: c.Limits, Network: c.Scope.Net == nil, Loopback: c.Scope.Net == nil && c.Loopback, Writable: append([]string{dir}, c.Scope.FS...)}
	switch {
	case c.Scope.FS == nil && c.Scope.Net == nil:
		p.Method = sandbox.Unconfined
	case c.Scope.FS == nil:
		p.Writable = append(p.Writable, "/")
	}
	return p
}

// An output is a writer that keeps a program's output up to a maximum size. It does not embed a buffer, because the buffer's
// ReadFrom would bypass Write.
type output struct {
	text []byte
	max  int
	over bool
	full func()
	tell io.Writer
}

// Write keeps at most max bytes of the output, and calls full if there are more. It ignores the excess rather than failing.
func (o *output) Write(text []byte) (int, error) {
	kept := text[:min(len(text), o.max-len(o.text))]
	o.text = append(o.text, kept...)
	if len(kept) < len(text) {
		o.over = true
		o.full()
	}
	if _, err := o.tell.Write(kept); err != nil {
		return 0, err
	}
	return len(text), nil
}

// A stderr is a writer that keeps the end of the text written to it.
type stderr struct{ end []byte }

func (s *stderr) Write(text []byte) (int, error) {
	s.end = append(s.end, text...)
	if len(s.end) > 2*maxStderr {
		s.end = append(s.end[:0], s.end[len(s.end)-maxStderr:]...)
	}
	return len(text), nil
}

// String returns the kept text on one line, preceded by ": ". Secrets are removed, even a secret whose beginning is cut off.
func (s *stderr) String(secrets *redact.Set) string {
	text := strings.ToValidUTF8(secrets.CleanCut(string(s.end)), "")
	if text = strings.Join(strings.Fields(text[max(0, len(text)-maxStderr):]), " "); text == "" {
		return ""
	}
	return ": " + strings.ToValidUTF8(text, "")
}
