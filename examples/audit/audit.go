// Package audit checks a Go module. It vets and tests every package, counts exported names without a comment and lines marked for
// later, and writes one report.
//
//	go run ./cmd/stone run ./examples/audit -- --dir .
package audit

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

type (
	// Package is one package of the module.
	Package struct {
		Path   string   `json:"path"`
		Dir    string   `json:"dir"`
		Module string   `json:"module"`
		Files  []string `json:"files"`           // Go files, including tests
		Round  int      `json:"round"`           // number of earlier attempts
		Error  string   `json:"error,omitempty"` // reason why the package cannot be listed
	}
	// Worklist lists the packages to check in the next round.
	Worklist struct{ Packages []Package }
	// Checked holds the results for one package in one round.
	Checked struct {
		Package      Package  `json:"package"`
		Broken       string   `json:"broken,omitempty"`       // reason why the package does not build
		Vet          []string `json:"vet,omitempty"`          // findings of go vet
		Tests        string   `json:"tests"`                  // "none", "pass", "**fail**" or "**not built**"
		Covered      float64  `json:"covered"`                // percentage of statements; -1 if unknown
		Output       string   `json:"output,omitempty"`       // output of a test that failed
		Undocumented []string `json:"undocumented,omitempty"` // exported names without a comment
		Marks        []string `json:"marks,omitempty"`        // comments marked for later, as file:line: text
		Says         []string `json:"says,omitempty"`         // summary of the results
		Weight       int      `json:"weight"`
	}
	// Ledger holds the latest result for each package.
	Ledger struct {
		Checked []Checked `json:"checked"`
		Lost    []string  `json:"lost,omitempty"` // packages whose check itself failed
	}
	// Report is the result. Text is Markdown.
	Report struct {
		Text  string `json:"text"`
		Wrong bool   `json:"wrong"`
	}
)

var (
	worklist = dag.NewType[Worklist]("worklist")
	pkg      = dag.NewType[Package]("package")
	checked  = dag.NewType[Checked]("checked")
	ledger   = dag.NewType[Ledger]("ledger")
	report   = dag.NewType[Report]("report")
)

// rounds is the maximum number of attempts for a package that does not build.
const rounds = 2

// Pipeline parses its flags and returns the audit of one module.
func Pipeline(args []string) (stone.Ashlar, error) {
	flags := flag.NewFlagSet("audit", flag.ContinueOnError)
	var usage strings.Builder
	flags.SetOutput(&usage)
	dir := flags.String("dir", ".", "directory of the Go module")
	full := flags.Bool("full", false, "run the tests without -short")
	limit := flags.Duration("timeout", 10*time.Minute, "longest time for the tests of one package")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return stone.Ashlar{}, fmt.Errorf("unexpected argument %q%s: the flags are --dir, --full and --timeout", flags.Arg(0), strings.TrimSpace(usage.String()))
	}
	return stone.Seq("audit",
		stone.Func0("list-packages", worklist, func(ctx context.Context) (Worklist, error) { return listPackages(ctx, *dir) }),
		stone.Loop("until-settled",
			stone.Seq("round",
				stone.Map("each-package", dag.Derive(worklist, func(w Worklist) []Package { return w.Packages }), pkg,
					stone.Func("check", pkg, checked, func(ctx context.Context, p Package) (Checked, error) {
						c := Checked{Package: p, Broken: p.Error, Tests: "none", Covered: -1}
						err := errors.Join(c.vet(ctx), c.test(ctx, *full, *limit), c.read())
						c.weigh()
						return c, err
					}), stone.Lanes(runtime.NumCPU())),
				stone.Reduce(stone.New("collect", ledger, collect, stone.Queries(dag.History(checked), dag.All(dag.Failure)))),
				stone.Func("retry", ledger, worklist, unbuilt),
			),
			stone.Until(worklist, func(w Worklist) bool { return len(w.Packages) == 0 }), rounds),
		stone.Func("report", ledger, report, write)), nil
}

// goTool runs the go command in a directory. It returns the output and whether the command succeeded.
func goTool(ctx context.Context, dir string, args ...string) (out string, ok bool, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	all, err := cmd.CombinedOutput()
	if ok = err == nil; errors.As(err, new(*exec.ExitError)) && ctx.Err() == nil {
		err = nil // the caller interprets it
	}
	return string(all), ok, err
}

func listPackages(ctx context.Context, dir string) (w Worklist, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-json=ImportPath,Dir,Module,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Error", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if errors.As(err, new(*exec.ExitError)) && ctx.Err() == nil {
		err = nil
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); err == nil && dec.More(); {
		var p struct {
			ImportPath, Dir                              string
			GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
			Module                                       struct{ Path string }
			Error                                        struct{ Err string }
		}
		if err = dec.Decode(&p); err == nil && p.Dir != "" && p.Module.Path != "" { // in other directories, the go command would check the package that is running
			files := slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles)
			w.Packages = append(w.Packages, Package{p.ImportPath, p.Dir, p.Module.Path, files, 0, said.FindString(p.Error.Err)})
		}
	}
	if err == nil && len(w.Packages) == 0 {
		err = stone.Fail("no-module", "%s holds no Go module: name one with --dir", dir)
	}
	return w, err
}

func (c *Checked) vet(ctx context.Context) error {
	// The flag is needed because GOFLAGS may set -trimpath: then a finding from the cache would name the folder where it was first found.
	out, ok, err := goTool(ctx, c.Package.Dir, "vet", "-trimpath=false", ".")
	for line := range strings.Lines(out) {
		if broken, is := strings.CutPrefix(line, "vet: "); is { // the type checker failed, so this is no finding of vet
			c.Broken, c.Vet = strings.TrimSpace(broken), nil
			break
		} else if line = strings.TrimSpace(line); !ok && line != "" && line[0] != '#' {
			c.Vet = append(c.Vet, line)
		}
	}
	return err
}

func (c *Checked) test(ctx context.Context, full bool, limit time.Duration) error {
	// Vetting is a separate check here, and its findings must not count as a failure to build.
	out, ok, err := goTool(ctx, c.Package.Dir, "test", "-vet=off", "-cover", "-timeout", limit.String(), fmt.Sprintf("-short=%t", !full), ".")
	if m := coverage.FindStringSubmatch(out); m != nil {
		fmt.Sscan(m[1], &c.Covered)
	}
	switch all := strings.Split(strings.TrimSpace(out), "\n"); {
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		c.Tests, c.Broken = "**not built**", cmp.Or(c.Broken, said.FindString(out))
	case !strings.Contains(strings.Join(c.Package.Files, " "), "_test.go"):
	case ok:
		c.Tests = "pass"
	default:
		c.Tests, c.Output = "**fail**", strings.Join(all[max(0, len(all)-20):], "\n")
	}
	return err
}

var (
	coverage   = regexp.MustCompile(`coverage: ([0-9.]+)% of statements`)
	said       = regexp.MustCompile(`(?m)^[^#\s].*`)                  // first line that is no remark
	marks      = regexp.MustCompile(`//.*?\b((?:TODO|FIXME)\b.*)`)    // comments that postpone work
	documented = regexp.MustCompile(`^//|\*/\n|\n(?:var|const) .*//`) // documented by a comment before the name or beside its value
	exported   = regexp.MustCompile(`^(?:func (?:\([^)]*?\b([A-Z]\w*)(?:\[[^\]]*\])?\) )?|type |var |const )([A-Z]\w*)`)
)

// read records what is missing in the source of the package.
func (c *Checked) read() error {
	for _, name := range c.Package.Files {
		source, err := os.ReadFile(filepath.Join(c.Package.Dir, name))
		if err != nil {
			return err
		}
		before, library := "", !strings.HasSuffix(name, "_test.go") && !strings.Contains("\n"+string(source), "\npackage main\n")
		for i, line := range strings.Split(string(source), "\n") {
			if m := marks.FindStringSubmatch(line); m != nil {
				c.Marks = append(c.Marks, fmt.Sprintf("%s:%d: %s", name, i+1, m[1]))
			}
			if m := exported.FindStringSubmatch(line); m != nil && library && !documented.MatchString(before+"\n"+line) {
				c.Undocumented = append(c.Undocumented, strings.TrimPrefix(m[1]+"."+m[2], "."))
			}
			before = line
		}
	}
	return nil
}

// collect returns the latest result of every package from all rounds, in the order of the first results.
func collect(_ context.Context, d dag.DAG) (l Ledger, err error) {
	all, err := dag.History(checked).From(d)
	for _, c := range all {
		if i := slices.IndexFunc(l.Checked, func(o Checked) bool { return o.Package.Path == c.Package.Path }); i >= 0 {
			l.Checked[i] = c
		} else {
			l.Checked = append(l.Checked, c)
		}
	}
	lost, other := dag.Lost(d)
	for _, lane := range lost {
		l.Lost = append(l.Lost, fmt.Sprintf("%v: %v", lane.Marker.Get("path", "?"), lane.Failure.Get("reason", "")))
	}
	return l, errors.Join(err, other)
}

// unbuilt returns the packages that did not build and have been tried only once.
func unbuilt(_ context.Context, l Ledger) (w Worklist, _ error) {
	for _, c := range l.Checked {
		if c.Package.Round++; c.Broken != "" && c.Package.Round < rounds {
			w.Packages = append(w.Packages, c.Package)
		}
	}
	return w, nil
}

//go:embed report.tmpl
var layout string

var printed = template.Must(template.New("report").Funcs(template.FuncMap{
	"line": strings.NewReplacer("\n", " ", "`", "'").Replace, "indent": func(s string) string { return strings.ReplaceAll(s, "\n", "\n  ") },
	"inc": func(n int) int { return n + 1 }, "trim": strings.TrimPrefix, "join": strings.Join,
}).Parse(layout))

// write writes the report. Missing comments do not count as failures.
func write(_ context.Context, l Ledger) (r Report, err error) {
	var text strings.Builder
	wrong, undocumented, marked := len(l.Lost) > 0, 0, 0
	for _, c := range l.Checked {
		wrong = wrong || c.Broken != "" || c.Output != "" || len(c.Vet) > 0
		undocumented, marked = undocumented+len(c.Undocumented), marked+len(c.Marks)
	}
	worst := slices.DeleteFunc(slices.Clone(l.Checked), func(c Checked) bool { return c.Weight == 0 })
	slices.SortStableFunc(worst, func(x, y Checked) int { return cmp.Compare(y.Weight, x.Weight) })
	err = printed.Execute(&text, map[string]any{"Checked": l.Checked, "Lost": l.Lost, "Worst": worst[:min(5, len(worst))], "Wrong": wrong, "Undocumented": undocumented, "Marks": marked})
	return Report{text.String(), wrong}, err
}

// weigh records what is wrong with a package and how serious this is.
func (c *Checked) weigh() {
	add := func(n, weight int, format string, about any) {
		if n > 0 {
			c.Weight, c.Says = c.Weight+n*weight, append(c.Says, fmt.Sprintf(format, about))
		}
	}
	some := func(all []string) string {
		if len(all) > 3 {
			return fmt.Sprintf("`%s` and %d more", strings.Join(all[:3], "`, `"), len(all)-3)
		}
		return "`" + strings.Join(all, "`, `") + "`"
	}
	add(min(1, len(c.Broken)), 1000, "does not build%.0s", "")
	add(min(1, len(c.Output)), 500, "tests fail%.0s", "")
	add(len(c.Vet), 20, "%d findings of go vet", len(c.Vet))
	if c.Covered >= 0 {
		add(int(50-c.Covered), 1, "coverage %.1f %%", c.Covered)
	}
	add(len(c.Undocumented), 2, "without comment: %s", some(c.Undocumented))
	add(len(c.Marks), 1, "marked: %s", some(c.Marks))
}
