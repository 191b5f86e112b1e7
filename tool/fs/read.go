package fs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/tool"
)

const maxEntries = 1000 // the maximum number of entries in a listing

type readInput struct {
	Path   string `json:"path" jsonschema:"the file, relative to the working directory"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line to return, counted from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to return; without it, as many as fit"`
}

func (in readInput) file() string { return in.Path }

// Read returns the tool read_file, which returns lines of a text file.
func Read(r Root) agent.Middleware {
	return tool.Func("read_file", "Reads a text file, or some lines of it.",
		with(r.at, func(ctx context.Context, p *place, in readInput) (agent.Result, error) {
			if in.Offset < 0 || in.Limit < 0 {
				return agent.Result{}, fmt.Errorf("offset and limit count lines and cannot be negative, got %d and %d", in.Offset, in.Limit)
			}
			f, _, err := p.open()
			if err != nil {
				return agent.Result{}, err
			}
			defer f.Close()
			s := slice{from: max(in.Offset, 1), limit: in.Limit, max: r.maxRead()}
			if err := s.read(ctx, f); err != nil {
				return agent.Result{}, explain(p.shown, err)
			}
			text, err := s.describe(p.shown)
			if err != nil {
				return agent.Result{}, err
			}
			meta := map[string]any{"bytes": len(s.text), "lines": s.next - s.from}
			if s.more {
				meta["next_offset"] = s.next
			}
			return p.result(text, meta), nil
		}), tool.Parallel(), tool.Effects("fs/read"))
}

// A slice selects lines of a text and, after read, contains them.
type slice struct {
	from, limit, max int // the first line, the number of lines (0 means all), and the maximum number of bytes

	text []byte
	next int  // the number of the line after the last line that was read
	more bool // whether the file continues after these lines
	cut  bool // whether the text is only the beginning of a line longer than max
}

// read reads the selected lines from r. It keeps at most max bytes of text in memory.
func (s *slice) read(ctx context.Context, r io.Reader) error {
	br := bufio.NewReaderSize(r, 64<<10)
	if head, err := br.Peek(8 << 10); err != nil && err != io.EOF {
		return err
	} else if bytes.IndexByte(head, 0) >= 0 {
		return errBinary
	}
	start := 0 // the start of the current line in text
	for s.next = 1; s.limit == 0 || s.next-s.from < s.limit; {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk, err := br.ReadSlice('\n')
		if s.next >= s.from {
			if len(s.text)+len(chunk) > s.max {
				s.overflow(start, chunk)
				return nil
			}
			s.text = append(s.text, chunk...)
		}
		switch {
		case err == nil:
			s.next++
			start = len(s.text)
		case err == io.EOF:
			if len(chunk) > 0 || start < len(s.text) {
				s.next++ // a last line without a line break counts too
			}
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	_, err := br.Peek(1)
	s.more = err == nil
	return nil
}

// overflow truncates the text before the line that does not fit. If this is the first line, it truncates the line instead.
func (s *slice) overflow(start int, chunk []byte) {
	s.more = true
	if start > 0 {
		s.text = s.text[:start]
		return
	}
	s.cut = true
	s.text = append(s.text, chunk[:s.max-len(s.text)]...)
	for n := 1; n < utf8.UTFMax && n <= len(s.text); n++ {
		if last := s.text[len(s.text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				s.text = s.text[:len(s.text)-n]
			}
			break
		}
	}
	s.next++
}

var errBinary = errors.New("not a text in UTF-8 but binary data, which cannot be shown")

func (s *slice) describe(shown string) (string, error) {
	switch {
	case !utf8.Valid(s.text):
		return "", fmt.Errorf("%s: %w", shown, errBinary)
	case s.next <= s.from && s.from > 1:
		return "", fmt.Errorf("%s has only %d lines: offset %d is after its end", shown, s.next-1, s.from)
	case len(s.text) == 0:
		return fmt.Sprintf("[%s is empty]", shown), nil
	case s.cut:
		return fmt.Sprintf("%s\n[line %d is longer than the %d bytes that one call returns: its rest is not shown; the next line has offset %d]",
			s.text, s.from, s.max, s.next), nil
	case s.more:
		return fmt.Sprintf("%s[lines %d to %d; there are more: read on with offset %d]", s.text, s.from, s.next-1, s.next), nil
	}
	return string(s.text), nil
}

type listInput struct {
	Path string `json:"path,omitempty" jsonschema:"the directory, relative to the working directory; without it, the working directory"`
}

func (in listInput) file() string { return in.Path }

// List returns the tool list_directory, which returns the entries of a directory sorted by name.
func List(r Root) agent.Middleware {
	return tool.Func("list_directory", "Lists a directory: directories end in a slash, files have their size in bytes.",
		with(r.at, func(ctx context.Context, p *place, in listInput) (agent.Result, error) {
			entries, more, err := p.entries()
			if err != nil {
				return agent.Result{}, explain(p.shown, err)
			}
			var b strings.Builder
			for _, e := range entries {
				b.WriteString(entryLine(e))
			}
			switch {
			case more:
				fmt.Fprintf(&b, "[%d entries; there are more, which are not shown]\n", len(entries))
			case len(entries) == 0:
				fmt.Fprintf(&b, "[%s is empty]\n", p.shown)
			}
			return p.result(b.String(), map[string]any{"entries": len(entries)}), nil
		}), tool.Parallel(), tool.Effects("fs/read"))
}

func (p *place) entries() (entries []os.DirEntry, more bool, err error) {
	// This is checked first, because opening something other than a directory could block.
	info, err := p.Stat(p.name)
	if err != nil {
		return nil, false, err
	}
	if !info.IsDir() {
		return nil, false, fmt.Errorf("%s is not a directory", p.shown)
	}
	d, err := p.OpenFile(p.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, false, err
	}
	defer d.Close()
	entries, err = d.ReadDir(maxEntries + 1)
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	if more = len(entries) > maxEntries; more {
		entries = entries[:maxEntries]
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, more, nil
}

func entryLine(e os.DirEntry) string {
	name := e.Name()
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		name = fmt.Sprintf("%q", name) // otherwise a name could look like two entries
	}
	switch mode := e.Type(); {
	case mode.IsDir():
		return name + "/\n"
	case mode.IsRegular():
		if info, err := e.Info(); err == nil {
			return fmt.Sprintf("%s\t%d\n", name, info.Size())
		}
		return name + "\n" // the entry has just been removed
	case mode&os.ModeSymlink != 0:
		return name + "\tsymbolic link\n"
	}
	return name + "\tspecial file\n"
}

type pathInput struct {
	Path string `json:"path" jsonschema:"the path, relative to the working directory"`
}

func (in pathInput) file() string { return in.Path }

// Exists returns the tool file_exists, which returns "true" if the path leads to a file or directory and "false" otherwise.
func Exists(r Root) agent.Middleware {
	return tool.Func("file_exists", "Reports whether a file or directory exists: true or false.",
		with(r.at, func(ctx context.Context, p *place, in pathInput) (agent.Result, error) {
			switch _, err := p.Stat(p.name); {
			case err == nil:
				return p.result("true", nil), nil
			case errors.Is(err, iofs.ErrNotExist):
				return p.result("false", nil), nil
			default:
				return agent.Result{}, explain(p.shown, err)
			}
		}), tool.Parallel(), tool.Effects("fs/read"))
}

type viewInput struct {
	Path string `json:"path" jsonschema:"the file, relative to the working directory"`
}

func (in viewInput) file() string { return in.Path }

// View returns the tool view_file, which shows the model an image, a PDF document, an audio file or a video of at most
// llm.MaxMedia bytes. It is separate from read_file, because not every model supports such files. If the model's protocol does
// not support a file, the model is told so.
func View(r Root) agent.Middleware {
	return tool.Func("view_file", "Shows a file that is not text: a picture, a PDF document, a sound or a video.",
		with(r.at, func(ctx context.Context, p *place, in viewInput) (agent.Result, error) {
			f, info, err := p.open()
			if err != nil {
				return agent.Result{}, err
			}
			defer f.Close()
			if info.Size() > llm.MaxMedia {
				return agent.Result{}, fmt.Errorf("%s has %d bytes, but at most %d can be shown", p.shown, info.Size(), llm.MaxMedia)
			}
			data, err := io.ReadAll(io.LimitReader(f, llm.MaxMedia+1))
			if err != nil {
				return agent.Result{}, explain(p.shown, err)
			}
			m, err := llm.NewMedia(p.shown, data)
			if err != nil || strings.HasPrefix(m.Type, "text/") || m.Type == "application/json" {
				return agent.Result{}, fmt.Errorf("%s is not a picture, PDF document, sound or video; if it is text, read it with read_file", p.shown)
			}
			res := p.result(m.String(), map[string]any{"bytes": len(data)})
			res.Media = []*llm.Media{m}
			return res, nil
		}), tool.Parallel(), tool.Effects("fs/read"))
}
