package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/sandbox"
)

// maxFile is the maximum size, in bytes, of a file that the program can read through the protocol.
const maxFile = 8 << 20

// RequestPermission implements sdk.Client. It asks the people of the run. If the question is canceled, permission is denied.
func (t *turn) RequestPermission(_ context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	id, err := t.allowed(r), error(nil)
	if id == "" {
		id, err = t.ask(r)
	}
	if err != nil {
		t.fail(err)
	}
	if err != nil || id == "" {
		return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
	}
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(id)}, nil
}

// ask asks a person and returns the id of the chosen option. If the question is canceled, it returns the option that rejects the
// call once.
func (t *turn) ask(r sdk.RequestPermissionRequest) (sdk.PermissionOptionId, error) {
	title, what := "a tool", "tool"
	if r.ToolCall.Title != nil {
		title = t.secrets.Text(*r.ToolCall.Title)
	}
	if r.ToolCall.Kind != nil {
		what = string(*r.ToolCall.Kind)
	}
	options := map[string]sdk.PermissionOptionId{}
	var choices []string
	for _, o := range r.Options {
		name := strings.TrimSpace(strings.ReplaceAll(o.Name, "…", "...")) // a choice that contains "…" would have a blank
		if _, twice := options[name]; twice || name == "" {
			name = fmt.Sprintf("%s (%s)", name, o.OptionId)
		}
		options[name] = o.OptionId
		choices = append(choices, name)
	}
	if len(choices) == 0 {
		return "", nil
	}
	input, err := json.Marshal(t.relative(r.ToolCall.RawInput))
	if err != nil {
		return "", err
	}
	input = []byte(t.secrets.Text(string(input)))
	q := ask.Question{Name: t.req.Cap, Choices: choices, Call: &ask.Call{Tool: what, Input: input},
		Text: fmt.Sprintf("%s asks for permission: %s", t.req.Cap, strings.ReplaceAll(title, t.clone.dir, "."))}
	about := q.Text + "\n" + string(input) + "\n" + strings.Join(choices, "\n")
	sum := sha256.Sum256([]byte(about))
	t.asking.Lock()
	defer t.asking.Unlock()
	// The step is named after the question, so that a restarted program receives the recorded answer.
	answer, err := stone.Step(t.ctx, "permission-"+hex.EncodeToString(sum[:8]), about, func(ctx context.Context, _ string) (string, error) {
		response, err := stone.In(ctx).Ask(q)
		if fault.Kind(err) == string(kind.Declined) {
			return "", nil
		}
		return response, err
	})
	if answer == "" && err == nil {
		return first(r.Options, sdk.PermissionOptionKindRejectOnce), nil
	}
	return options[answer], err
}

// relative replaces the path of the clone in all strings of v, because the path differs between clones.
func (t *turn) relative(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, t.clone.dir, ".")
	case []any:
		for i := range v {
			v[i] = t.relative(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = t.relative(v[k])
		}
	}
	return v
}

// inside opens the clone's directory and returns the path of a file relative to it. Symbolic links cannot lead outside.
func (t *turn) inside(path string) (*os.Root, string, error) {
	rel, err := filepath.Rel(t.clone.dir, path)
	if err != nil || !filepath.IsLocal(rel) || !filepath.IsAbs(path) {
		return nil, "", sdk.NewInvalidParams(map[string]any{"error": fmt.Sprintf("%s is outside of the working directory %s", path, t.clone.dir)})
	}
	root, err := os.OpenRoot(t.clone.dir)
	return root, rel, err
}

// ReadTextFile implements sdk.Client.
func (t *turn) ReadTextFile(_ context.Context, r sdk.ReadTextFileRequest) (res sdk.ReadTextFileResponse, err error) {
	root, path, err := t.inside(r.Path)
	if err != nil {
		return res, err
	}
	defer root.Close()
	f, err := openRegular(root, path, os.O_RDONLY)
	if err != nil {
		return res, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	if err != nil {
		return res, err
	}
	lines := slices.Collect(strings.Lines(string(data)))
	from := min(max(value(r.Line)-1, 0), len(lines))
	lines = lines[from:]
	if r.Limit != nil {
		lines = lines[:min(max(*r.Limit, 0), len(lines))]
	}
	return sdk.ReadTextFileResponse{Content: strings.Join(lines, "")}, nil
}

// WriteTextFile implements sdk.Client.
func (t *turn) WriteTextFile(_ context.Context, r sdk.WriteTextFileRequest) (res sdk.WriteTextFileResponse, err error) {
	root, path, err := t.inside(r.Path)
	if err != nil {
		return res, err
	}
	defer root.Close()
	top, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	if slices.Contains(sandbox.Protected(), strings.ToLower(top)) {
		return res, fmt.Errorf("%s is read-only", top)
	}
	if err = root.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return res, err
	}
	f, err := openRegular(root, path, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return res, err
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteString(r.Content)
	}
	return res, errors.Join(err, f.Close())
}

// openRegular opens a regular file. If the file is a pipe, it does not wait for the other end.
func openRegular(root *os.Root, path string, flag int) (*os.File, error) {
	f, err := root.OpenFile(path, flag|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// The client does not offer terminals, so the following methods are never called.

// CreateTerminal implements sdk.Client.
func (*turn) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (r sdk.CreateTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/create")
}

// KillTerminal implements sdk.Client.
func (*turn) KillTerminal(context.Context, sdk.KillTerminalRequest) (r sdk.KillTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/kill")
}

// TerminalOutput implements sdk.Client.
func (*turn) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (r sdk.TerminalOutputResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/output")
}

// ReleaseTerminal implements sdk.Client.
func (*turn) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (r sdk.ReleaseTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/release")
}

// WaitForTerminalExit implements sdk.Client.
func (*turn) WaitForTerminalExit(context.Context, sdk.WaitForTerminalExitRequest) (r sdk.WaitForTerminalExitResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/wait_for_exit")
}
