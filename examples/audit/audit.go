// Package audit checks a Go module: it vets and tests every package,
// counts exported names without a comment and lines marked for later, and writes
// one report.
//
//	go run ./cmd/stone run ./examples/audit -- --dir .
package audit

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// Module is the Go module to check.
type Module struct {
	Path string `json:"path"`
	Dir  string `json:"dir"`
}

// Package is one package of the module.
type Package struct {
	Path  string   `json:"path"`
	Dir   string   `json:"dir"`
	Files []string `json:"files"`           // Go files, tests included
	Round int      `json:"round"`           // number of earlier attempts
	Error string   `json:"error,omitempty"` // why it cannot be listed
}

// Worklist lists the packages to check in the next round.
type Worklist struct {
	Packages []Package `json:"packages"`
}

// VetResult is the output of go vet for a package.
type VetResult struct {
	Problems   []string `json:"problems,omitempty"`
	BuildError string   `json:"build_error,omitempty"`
}

// TestResult is the output of go test for a package.
type TestResult struct {
	HasTests   bool    `json:"has_tests"`
	Passed     bool    `json:"passed"`
	Coverage   float64 `json:"coverage"` // percent of statements; -1 if the package has none
	BuildError string  `json:"build_error,omitempty"`
	Output     string  `json:"output,omitempty"` // of a test that failed
}

// SourceResult lists findings in the source of a package.
type SourceResult struct {
	Undocumented []string `json:"undocumented,omitempty"` // exported names without a comment
	Marks        []string `json:"marks,omitempty"`        // comments marked for later, as file:line: text
	Unparsed     []string `json:"unparsed,omitempty"`
}

// Checked has the results of one package in one round.
type Checked struct {
	Package Package      `json:"package"`
	Vet     VetResult    `json:"vet"`
	Test    TestResult   `json:"test"`
	Source  SourceResult `json:"source"`
}

// Ledger has the latest result of each package.
type Ledger struct {
	Module  Module    `json:"module"`
	Checked []Checked `json:"checked"`
	Lost    []string  `json:"lost,omitempty"` // packages whose check itself failed
}

// Report is the result. Text is Markdown.
type Report struct {
	Text  string `json:"text"`
	Wrong bool   `json:"wrong"`
}

var (
	module   = dag.NewType[Module]("module")
	worklist = dag.NewType[Worklist]("worklist")
	pkg      = dag.NewType[Package]("package")
	vetted   = dag.NewType[VetResult]("vet")
	tested   = dag.NewType[TestResult]("test")
	sourced  = dag.NewType[SourceResult]("source")
	checked  = dag.NewType[Checked]("checked")
	ledger   = dag.NewType[Ledger]("ledger")
	report   = dag.NewType[Report]("report")
)

// rounds bounds the attempts on a package that does not build.
const rounds = 2

// Pipeline reads its flags and returns the audit of one module.
func Pipeline(args []string) (stone.Ashlar, error) {
	flags := flag.NewFlagSet("audit", flag.ContinueOnError)
	var usage strings.Builder
	flags.SetOutput(&usage)
	dir := flags.String("dir", ".", "directory of the Go module")
	full := flags.Bool("full", false, "run the tests without -short")
	limit := flags.Duration("timeout", 10*time.Minute, "longest time for the tests of one package")
	if err := flags.Parse(args); err != nil {
		return stone.Ashlar{}, fmt.Errorf("%s", strings.TrimSpace(usage.String()))
	}
	if flags.NArg() > 0 {
		flags.Usage()
		return stone.Ashlar{}, fmt.Errorf("unexpected argument %q\n%s", flags.Arg(0), strings.TrimSpace(usage.String()))
	}

	check := stone.Seq("check",
		stone.Func("vet", pkg, vetted, vet),
		stone.Func("test", pkg, tested, func(ctx context.Context, p Package) (TestResult, error) {
			return test(ctx, p, *full, *limit)
		}),
		stone.Func("read-source", pkg, sourced, readSource),
		stone.New("sum-up", checked, sumUp, stone.Queries(pkg, vetted, tested, sourced)),
	)
	return stone.Seq("audit",
		stone.Func0("find-module", module, func(ctx context.Context) (Module, error) { return findModule(ctx, *dir) }),
		stone.Func("list-packages", module, worklist, listPackages),
		stone.Loop("until-settled",
			stone.Seq("round",
				stone.Map("each-package", dag.Derive(worklist, func(w Worklist) []Package { return w.Packages }), pkg,
					check, stone.Lanes(runtime.NumCPU())),
				stone.Reduce(stone.New("collect", ledger, collect,
					stone.Queries(module, dag.History(checked), dag.All(dag.Failure)))),
				stone.Func("retry", ledger, worklist, unbuilt),
			),
			stone.Until(worklist, func(w Worklist) bool { return len(w.Packages) == 0 }),
			rounds,
		),
		stone.Match("verdict", stone.On(ledger, Ledger.wrong),
			stone.Case(true, stone.Func("report-problems", ledger, report, problems)),
			stone.Case(false, stone.Func("report-clean", ledger, report, clean)),
		),
	), nil
}

// sumUp combines the results of one lane.
func sumUp(_ context.Context, d dag.DAG) (c Checked, err error) {
	if c.Package, err = pkg.From(d); err != nil {
		return c, err
	}
	if c.Vet, err = vetted.From(d); err != nil {
		return c, err
	}
	if c.Test, err = tested.From(d); err != nil {
		return c, err
	}
	c.Source, err = sourced.From(d)
	return c, err
}

// collect keeps the latest result of every package from all rounds, in the order of the first results.
func collect(_ context.Context, d dag.DAG) (Ledger, error) {
	m, err := module.From(d)
	if err != nil {
		return Ledger{}, err
	}
	all, err := dag.History(checked).From(d)
	if err != nil {
		return Ledger{}, err
	}
	l := Ledger{Module: m}
	at := map[string]int{}
	for _, c := range all {
		if i, seen := at[c.Package.Path]; seen {
			l.Checked[i] = c
			continue
		}
		at[c.Package.Path] = len(l.Checked)
		l.Checked = append(l.Checked, c)
	}
	lost, err := dag.Lost(d)
	for _, lane := range lost {
		l.Lost = append(l.Lost, fmt.Sprintf("%v: %v", lane.Marker.Get("path", "?"), lane.Failure.Get("reason", "")))
	}
	return l, err
}

// unbuilt lists the packages that did not build and were tried only once.
func unbuilt(_ context.Context, l Ledger) (Worklist, error) {
	w := Worklist{Packages: []Package{}}
	for _, c := range l.Checked {
		if c.buildError() != "" && c.Package.Round+1 < rounds {
			again := c.Package
			again.Round++
			w.Packages = append(w.Packages, again)
		}
	}
	return w, nil
}

func (c Checked) buildError() string {
	for _, e := range []string{c.Package.Error, c.Vet.BuildError, c.Test.BuildError} {
		if e != "" {
			return e
		}
	}
	return ""
}

// wrong reports whether a package does not build, fails its tests or has findings of
// go vet. Missing comments do not count.
func (l Ledger) wrong() bool {
	for _, c := range l.Checked {
		if c.buildError() != "" || len(c.Vet.Problems) > 0 || c.Test.HasTests && !c.Test.Passed {
			return true
		}
	}
	return len(l.Lost) > 0
}
