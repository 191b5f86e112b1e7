package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/cli/internal/load"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/trust"
)

// trustEnv is the environment variable that, like --trust, makes the command trust any project that it finds.
const trustEnv = "STONE_TRUST"

// trusting is set by the --trust flag for DefaultModel, which belongs to no command.
var trusting atomic.Bool

// A found describes a project that the command found by itself: what the project would make the command do, and the files that
// configure it.
type found struct {
	dir   string // .stone directory of the project
	wants []string
	files []string
	state []string // state files of the project on whose contents commands would act
	// opaque is the error that explains why trust cannot cover everything that the project compiles, or nil if it can.
	opaque error
}

// consent returns nil if the user trusts the found project: by a flag, by the environment, by an earlier answer, or by an answer
// at this terminal.
func (a *app) consent(f found) error {
	if a.trusting {
		trusting.Store(true)
	}
	if len(f.wants) == 0 || a.trusts() {
		return nil
	}
	changed, known, err := f.changed()
	if err != nil {
		return fmt.Errorf("%w: name the configuration with --config, or add --trust", err)
	}
	if len(changed) == 0 {
		return nil
	}
	why := "is not trusted"
	if known {
		why = "has changed since it was trusted: " + strings.Join(changed, ", ")
	}
	if terminal(a.Stdin) == nil || terminal(a.Stderr) == nil {
		return fmt.Errorf("%s %s: %s: read its files, then run %s, or set %s=1",
			f.dir, why, f.does(), quotedAll(a.Name, "trust", filepath.Dir(f.dir)), trustEnv)
	}
	a.complain("%s %s. It was found here, not named with a flag:", f.dir, why)
	f.print(a.Stderr)
	if !a.agrees("Trust it?") {
		return failed("%s is not trusted: nothing was run", f.dir)
	}
	return f.trust()
}

// trusts reports whether a flag or the environment makes the command trust any project that it finds.
func (a *app) trusts() bool { return a.trusting || os.Getenv(trustEnv) == "1" }

// does returns a description, on one line, of what the found project would make the command do.
func (f found) does() string {
	said := text.Line(f.wants[0])
	if n := len(f.wants) - 1; n > 0 {
		said += fmt.Sprintf(" and %d more", n)
	}
	return said
}

func (f found) print(w io.Writer) {
	for _, want := range f.wants {
		fmt.Fprintln(w, "  "+text.Line(want))
	}
	files := slices.Concat(f.state, f.files)
	for _, file := range files[:min(len(files), maxShown)] {
		fmt.Fprintln(w, "  see "+text.Line(file))
	}
	if more := len(files) - maxShown; more > 0 {
		fmt.Fprintf(w, "  and %s\n", text.Plural(more, "more file"))
	}
}

// maxShown is the maximum number of files shown in a question.
const maxShown = 20

func (f found) changed() (files []string, known bool, err error) {
	if f.opaque != nil {
		return nil, false, f.opaque
	}
	s, err := trust.Open()
	if err != nil {
		return nil, false, err
	}
	files, known, err = s.Changed(filepath.Dir(f.dir), f.files)
	for _, file := range f.state {
		files = append(files, filepath.Base(file))
	}
	return files, known, err
}

func (f found) trust() error {
	s, err := trust.Open()
	if err == nil {
		err = f.opaque
	}
	if err == nil {
		err = s.Add(filepath.Dir(f.dir), f.files)
	}
	for _, file := range f.state {
		if err == nil {
			err = s.Believe(file)
		}
	}
	if err != nil {
		return failed("the trust in %s cannot be saved: %w", f.dir, err)
	}
	return nil
}

// agrees asks at the terminal until the user answers yes or no, and reports whether the answer is yes. The end of the input means
// no. No input after the line with the answer is read.
func (a *app) agrees(question string) bool {
	for {
		fmt.Fprint(a.Stderr, question+" yes or no: ")
		line, err := readLine(a.Stdin)
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "yes":
			return true
		case "no":
			return false
		}
		if err != nil {
			fmt.Fprintln(a.Stderr)
			return false
		}
	}
}

// maxAnswer is the maximum length of a typed line.
const maxAnswer = 4096

func readLine(in io.Reader) (string, error) {
	var line []byte
	var one [1]byte
	for len(line) < maxAnswer {
		if _, err := io.ReadFull(in, one[:]); err != nil {
			return string(line), err
		}
		if one[0] == '\n' {
			break
		}
		line = append(line, one[0])
	}
	return string(line), nil
}

// consentToConfig asks the user to trust the configuration that a run would use.
func (a *app) consentToConfig() error {
	f, err := a.foundConfig()
	if err != nil {
		return err
	}
	return a.consent(f)
}

// foundConfig returns the configuration that was found for calls and, if the pipeline has a default model, the settings for it.
func (a *app) foundConfig() (found, error) {
	var f found
	if conf := a.calls.conf; conf != nil && conf.File != "" && a.calls.config == "" {
		file, err := filepath.Abs(conf.File)
		if err != nil {
			return f, err
		}
		f.dir, f.files = filepath.Dir(file), []string{file}
		if err := f.configured(conf); err != nil {
			return f, err
		}
	}
	if !defaultWanted.Load() {
		return f, nil
	}
	of, err := foundSettings()
	if err == nil && len(of.wants) > 0 {
		f.dir, f.wants = of.dir, append(f.wants, of.wants...)
		f.add(of.files...)
	}
	return f, err
}

// foundSettings returns the addresses in the project's settings to which requests to the default model are sent.
func foundSettings() (f found, err error) {
	if os.Getenv("STONE_URL") != "" {
		return f, nil // the user chose the address
	}
	if f.dir, err = config.Find("."); err != nil || f.dir == "" {
		return f, err
	}
	s, err := config.Read(f.dir)
	want := s.Reaches()
	if err != nil || want == "" {
		return f, err
	}
	f.wants = []string{want}
	f.files = config.Files(f.dir)
	return f, nil
}

// foundProject returns the pipeline, configuration and settings that the command without a sub-command reads from a .stone
// directory.
func (a *app) foundProject(dir, pipeline string) (found, error) {
	f := found{dir: dir, files: config.Files(dir)}
	code, err := filepath.Glob(filepath.Join(pipeline, "*.go"))
	switch {
	case isPlan(pipeline):
		f.wants = []string{"the plan " + pipeline + " is run"}
	case err == nil && len(code) > 0:
		f.wants = []string{"the Go code in " + pipeline + " is compiled and run"}
	default:
		pipeline = ""
	}
	switch {
	case isPlan(pipeline):
		f.add(pipeline)
	case pipeline != "":
		if err := f.compiled(pipeline, "."); err != nil {
			return f, err
		}
	}
	settings, err := foundSettings()
	if err != nil {
		return f, err
	}
	f.wants = append(f.wants, settings.wants...)
	conf, err := config.Nearest(filepath.Dir(dir), &a.linked.kinds)
	if err != nil {
		return f, err
	}
	return f, errors.Join(f.configured(conf), conf.Close())
}

// written reports whether Stone itself writes the file. An example is the database: a package may embed it together with the
// whole directory.
func (f *found) written(file string) bool {
	name := filepath.Base(file)
	for _, end := range beside {
		name = strings.TrimSuffix(name, end)
	}
	return filepath.Dir(file) == f.dir && slices.Contains([]string{runsFile, indexFile, ".gitignore"}, name)
}

// configured adds the files of a configuration to f, and the programs, files and addresses that the configuration uses.
func (f *found) configured(conf *config.Config) error {
	for _, index := range conf.Indexes() {
		if err := f.stateIn(index); err != nil {
			return err
		}
	}
	f.wants = append(f.wants, conf.Reaches()...)
	f.add(slices.DeleteFunc(conf.ProjectFiles(), f.written)...)
	if names := conf.Packages(); len(names) > 0 {
		return f.compiled(conf.Dir, names...)
	}
	return nil
}

// compiled adds to f the files from which packages are compiled.
func (f *found) compiled(dir string, packages ...string) error {
	of, err := load.Sources(context.Background(), dir, packages...)
	f.add(slices.DeleteFunc(of, f.written)...)
	if errors.As(err, new(*load.Opaque)) {
		f.opaque, err = err, nil
	}
	return err
}

// add adds files to f that it does not contain yet.
func (f *found) add(files ...string) {
	for _, file := range files {
		if !slices.Contains(f.files, file) {
			f.files = append(f.files, file)
		}
	}
}
