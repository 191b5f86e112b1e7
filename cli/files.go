package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// input returns the DAG with which a run starts.
func (a *app) input(ctx context.Context, p stone.Ashlar, flags runFlags) (dag.DAG, error) {
	if flags.input == "" && flags.from == "" {
		if flags.keep.fork.run != "" {
			return a.recordedInput(ctx, flags.keep.fork.in, flags.keep.fork.run)
		}
		return a.recordedInput(ctx, flags.keep.resume, flags.keep.id)
	} else if flags.input == "" {
		return readDAG(flags.from)
	}
	data := []byte(flags.input)
	if file, ok := strings.CutPrefix(flags.input, "@"); ok {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return dag.DAG{}, fmt.Errorf("--input: %w", err)
		}
	}
	d, err := a.typed(ctx, p, string(data))
	if err != nil {
		return d, fmt.Errorf("--input: %w", err)
	}
	return d, nil
}

// recordedInput returns the input of a recorded run. The parameter in names its database; it is "" for a new run, whose input is
// empty.
func (a *app) recordedInput(ctx context.Context, in, run string) (d dag.DAG, err error) {
	if in == "" {
		return d, nil
	}
	err = a.withStoreAs(ctx, in, sqlite.Options{}, func(s *store) error {
		info, err := s.find(ctx, run)
		if err != nil {
			return err
		}
		if d, err = journal.Input(ctx, s, info); err != nil {
			err = failed("%w", err)
		}
		return err
	})
	return d, err
}

// readDAG reads from a file the DAG with which a run starts.
func readDAG(path string) (dag.DAG, error) {
	f, err := os.Open(path)
	if err != nil {
		return dag.DAG{}, fmt.Errorf("--input-dag: %w", err)
	}
	defer f.Close()
	d, err := dag.Read(f)
	var bad *dag.FormatError
	if errors.As(err, &bad) {
		return d, fmt.Errorf("--input-dag: %s:%d: %s", path, bad.Line, bad.Reason)
	}
	if err != nil {
		return d, fmt.Errorf("--input-dag: %s: %w", path, err)
	}
	return d, nil
}

// A dagFile is the file to which a run's DAG is written; nil means none.
type dagFile struct {
	path    string
	replace bool // write a temporary file and rename it; false for devices and pipes
	mode    fs.FileMode
}

// newDAGFile returns the dagFile for a path. Before any money is spent, it checks that the file can be written.
func newDAGFile(path string) (*dagFile, error) {
	if path == "" {
		return nil, nil
	}
	if path == "-" {
		return nil, errors.New("--dag: want the name of a file: standard output is for the result")
	}
	d := &dagFile{path: path, replace: true, mode: 0o600}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		d.path = real
	}
	info, err := os.Stat(d.path)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("--dag: %s is a directory: want the name of a file", path)
	case err == nil:
		d.replace, d.mode = info.Mode().IsRegular(), info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--dag: %w", err)
	}
	if !d.replace {
		return d, nil
	}
	f, err := d.aside()
	if err != nil {
		return nil, fmt.Errorf("--dag: %w", err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return nil, fmt.Errorf("--dag: %w", err)
	}
	return d, nil
}

// aside creates a temporary file in the directory of the final file.
func (d *dagFile) aside() (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("%s.%08x.tmp", d.path, rand.Uint32()), os.O_CREATE|os.O_EXCL|os.O_WRONLY, d.mode)
}

// write writes the DAG. Readers see either the old file or the complete new one.
func (d *dagFile) write(record dag.DAG) error {
	if d == nil {
		return nil
	}
	open := d.aside
	if !d.replace {
		open = func() (*os.File, error) { return os.OpenFile(d.path, os.O_WRONLY, 0) }
	}
	f, err := open()
	switch {
	case err == nil && !d.replace:
		err = errors.Join(dag.Write(f, record), f.Close())
	case err == nil:
		if err = errors.Join(dag.Write(f, record), f.Sync(), f.Close()); err == nil {
			err = os.Rename(f.Name(), d.path)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("--dag: the DAG could not be written: %w", err)
	}
	return nil
}

// A traceFile is the file to which a run's events are written; nil means none.
type traceFile struct {
	file   *os.File
	writer *event.Writer
}

func openTrace(path string) (*traceFile, error) {
	if path == "" {
		return nil, nil
	}
	level, err := logLevel(os.Getenv("STONE_LOG_LEVEL"))
	if err != nil {
		return nil, err
	}
	f, err := event.Append(path)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	return &traceFile{f, event.NewWriter(f, level)}, nil
}

func (t *traceFile) close() error {
	if t == nil {
		return nil
	}
	if err := errors.Join(t.writer.Err(), t.file.Close()); err != nil {
		return fmt.Errorf("--trace: events are missing: %w", err)
	}
	return nil
}

func logLevel(name string) (slog.Level, error) {
	switch strings.ToLower(name) {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warning", "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	case "fatal":
		return slog.LevelError + 4, nil
	}
	return 0, fmt.Errorf("STONE_LOG_LEVEL is %q: want debug, info, warning, error or fatal", name)
}

// printResult prints the last node: as text if it has one, otherwise as indented JSON.
func (a *app) printResult(result stone.Result, all bool) error {
	n := result.Node
	if n == nil {
		return nil
	}
	content, shown := n.Own(), n.Text()
	if all {
		if shown == content {
			shown = n.JSON()
		}
		content = n.JSON()
	}
	if a.json {
		enc := json.NewEncoder(a.Stdout)
		enc.SetEscapeHTML(false)
		return output(enc.Encode(struct {
			ID      dag.ID          `json:"id"`
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
			Run     string          `json:"run"`
			Lanes   dag.Losses      `json:"lanes,omitzero"`
		}{n.ID(), n.Type(), json.RawMessage(content), result.RunID, dag.CountLost(result.Lost)}))
	}
	if shown == content {
		if !all {
			shown = text.WithoutBase64(shown)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, []byte(shown), "", "  "); err != nil {
			return output(err)
		}
		shown = pretty.String()
	}
	_, err := fmt.Fprintln(a.Stdout, strings.TrimSuffix(shown, "\n"))
	return output(err)
}
