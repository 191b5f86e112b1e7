package fs

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/tool"
)

// changing is locked while a file is changed, because an edit first reads and then writes the file, and several lanes may edit
// the same file.
var changing sync.Mutex

type writeInput struct {
	Path    string `json:"path" jsonschema:"the file, relative to the working directory"`
	Content string `json:"content" jsonschema:"the whole new content"`
}

func (in writeInput) file() string { return in.Path }

// Write returns the tool write_file, which writes a whole file and creates its missing parent directories.
func Write(r Root) agent.Middleware {
	return tool.Func("write_file", "Writes a file: makes a new one, with the directories it needs, or replaces all of an old one.",
		with(r.change, func(ctx context.Context, p *place, in writeInput) (agent.Result, error) {
			changing.Lock()
			defer changing.Unlock()
			if err := p.replace([]byte(in.Content), r.maxFile()); err != nil {
				return agent.Result{}, explain(p.shown, err)
			}
			return p.result(fmt.Sprintf("wrote %d bytes to %s", len(in.Content), p.shown),
				map[string]any{"bytes": len(in.Content)}), nil
		}), tool.Effects("fs/write"), tool.Preview(r.previewWrite))
}

// previewWrite returns a diff of the change that a write would make.
func (r Root) previewWrite(ctx context.Context, in writeInput) (string, error) {
	p, err := r.change(ctx, in.Path)
	if err != nil {
		return "", err
	}
	defer p.Close()
	switch _, err := p.Lstat(p.name); {
	case errors.Is(err, iofs.ErrNotExist):
		d := differ{lines: []string{fmt.Sprintf("new file %s of %d bytes:", p.shown, len(in.Content))}}
		for _, line := range splitLines([]byte(in.Content)) {
			d.line("+", line)
		}
		return strings.Join(d.lines, "\n"), nil
	case err != nil:
		return "", explain(p.shown, err)
	}
	old, err := p.load(r.maxFile())
	if err != nil {
		return "", err
	}
	return difference(p.shown, old, []byte(in.Content)), nil
}

// replace replaces the content of the file atomically.
func (p *place) replace(data []byte, limit int64) error {
	if int64(len(data)) > limit {
		return fmt.Errorf("%s would have %d bytes, more than the %d that are allowed: split it", p.shown, len(data), limit)
	}
	perm := os.FileMode(0)
	switch info, err := p.Lstat(p.name); {
	case err == nil:
		if err := p.regular(info); err != nil {
			return err
		}
		// A replacement would ignore the permissions of a read-only file.
		if perm = info.Mode().Perm(); perm&0o200 == 0 {
			return fmt.Errorf("%s is read-only", p.shown)
		}
	case errors.Is(err, iofs.ErrNotExist):
		if err := p.MkdirAll(filepath.Dir(p.name), 0o777); err != nil {
			return err
		}
		if err := p.settle(); err != nil {
			return err
		}
	default:
		return err
	}
	temp := filepath.Join(filepath.Dir(p.name), ".stone-"+rand.Text())
	err := p.write(temp, data, perm)
	if err == nil {
		err = p.Rename(temp, p.name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(p.Remove(temp)))
	}
	return nil
}

// write creates a file with the given content. If perm is not 0, the file has these permissions.
func (p *place) write(name string, data []byte, perm os.FileMode) error {
	f, err := p.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && perm != 0 {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync() // sync before renaming, because a power loss could otherwise leave an empty file
	}
	return errors.Join(err, f.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	return err
}

type editInput struct {
	Path string `json:"path" jsonschema:"the file, relative to the working directory"`
	Old  string `json:"old_string" jsonschema:"the text to replace, exactly as in the file; it must occur there once"`
	New  string `json:"new_string" jsonschema:"the text to put in its place"`
}

func (in editInput) file() string { return in.Path }

// Edit returns the tool edit_file, which replaces a text that occurs exactly once in the file.
func Edit(r Root) agent.Middleware {
	return tool.Func("edit_file", "Replaces one place in a text file. The old text must occur exactly once, so include enough of the text around it.",
		with(r.change, func(ctx context.Context, p *place, in editInput) (agent.Result, error) {
			changing.Lock()
			defer changing.Unlock()
			old, edited, at, err := p.edit(in, r.maxFile())
			if err != nil {
				return agent.Result{}, err
			}
			if err := p.replace(edited, r.maxFile()); err != nil {
				return agent.Result{}, explain(p.shown, err)
			}
			line := lineOf(old, at)
			return p.result(fmt.Sprintf("edited %s at line %d", p.shown, line), map[string]any{"line": line}), nil
		}), tool.Effects("fs/read", "fs/write"), tool.Preview(with(r.change, func(ctx context.Context, p *place, in editInput) (string, error) {
			old, edited, _, err := p.edit(in, r.maxFile())
			if err != nil {
				return "", err
			}
			return difference(p.shown, old, edited), nil
		})))
}

// edit returns the content of the file before and after the edit, and the byte offset of the edit.
func (p *place) edit(in editInput, limit int64) (old, edited []byte, at int, err error) {
	if old, err = p.load(limit); err != nil {
		return nil, nil, 0, err
	}
	if n := bytes.Count(old, []byte("\n")); n > 0 && n == bytes.Count(old, []byte("\r\n")) { // models write "\n"
		in.Old, in.New = ending.Replace(in.Old), ending.Replace(in.New)
	}
	if at, err = only(p.shown, old, in.Old, in.New); err != nil {
		return nil, nil, 0, err
	}
	return old, append(append(bytes.Clone(old[:at]), in.New...), old[at+len(in.Old):]...), at, nil
}

// ending converts all line endings to CRLF.
var ending = strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n")

// load returns the content of the file, or an error if it is larger than limit.
func (p *place) load(limit int64) ([]byte, error) {
	f, info, err := p.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that can be edited", p.shown, info.Size(), limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, explain(p.shown, err)
	}
	if int64(len(data)) > limit { // the file is growing, or is in /proc, where files report no size
		return nil, fmt.Errorf("%s has more than the %d bytes that can be edited", p.shown, limit)
	}
	return data, nil
}

// only returns the offset of old in text, or an error unless old occurs exactly once.
func only(shown string, text []byte, old, new string) (int, error) {
	switch {
	case old == "":
		return 0, errors.New("old_string is empty: give the text to replace, or use write_file for a whole file")
	case old == new:
		return 0, errors.New("old_string and new_string are the same: nothing would change")
	}
	first := bytes.Index(text, []byte(old))
	if first < 0 {
		return 0, fmt.Errorf("old_string does not occur in %s: %s", shown, whyMissing(string(text), old))
	}
	lines := []string{}
	for at := first; ; {
		lines = append(lines, fmt.Sprint(lineOf(text, at)))
		// The search continues one byte further rather than len(old), because overlapping occurrences count too.
		next := bytes.Index(text[at+1:], []byte(old))
		if next < 0 || len(lines) > 10 {
			break
		}
		at += 1 + next
	}
	if len(lines) > 1 {
		return 0, fmt.Errorf("old_string occurs more than once in %s, at the lines %s: add text around it that makes it unique",
			shown, strings.Join(lines, ", "))
	}
	return first, nil
}

// whyMissing returns the likely reason why the text was not found, by checking for mistakes that models often make.
func whyMissing(text, old string) string {
	unspaced := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	switch {
	case strings.Contains(text, strings.ReplaceAll(old, "\n", "\r\n")):
		return `its lines end in "\r\n", but the lines in old_string end in "\n"`
	case unspaced(old) != "" && strings.Contains(unspaced(text), unspaced(old)):
		return "it does with other white space; copy the white space exactly"
	}
	return "read the file and copy the text exactly"
}

func lineOf(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte("\n")) }

// Delete returns the tool delete_file, which deletes a file or an empty directory if the approver by allows it. The zero Approver
// refuses every call, [tool.Ask] asks a person, and [tool.Always] allows every call.
func Delete(r Root, by tool.Approver) agent.Middleware {
	return tool.Confirm(tool.Func("delete_file", "Deletes a file or an empty directory.",
		with(r.change, func(ctx context.Context, p *place, in pathInput) (agent.Result, error) {
			if p.name == "." {
				return agent.Result{}, errors.New("the working directory itself cannot be deleted")
			}
			if err := p.Remove(p.name); err != nil {
				return agent.Result{}, explain(p.shown, err)
			}
			return p.result("deleted "+p.shown, nil), nil
		}), tool.Effects("fs/write")), by)
}

// Mkdir returns the tool mkdir, which creates a directory and its missing parents.
func Mkdir(r Root) agent.Middleware {
	return tool.Func("mkdir", "Makes a directory, with the directories above it that are missing.",
		with(r.change, func(ctx context.Context, p *place, in pathInput) (agent.Result, error) {
			if err := p.MkdirAll(p.name, 0o777); err != nil {
				return agent.Result{}, explain(p.shown, err)
			}
			return p.result(p.shown+" is there", nil), nil
		}), tool.Effects("fs/write"))
}
