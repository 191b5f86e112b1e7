package layers

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/stonelayer/stone"

// table lists the packages of this module that each package may import, beside the
// packages that those may import in turn. A name that ends in /... matches all
// packages below it. The first line that fits a package counts; "." is the root package.
var table = []struct{ pkg, imports string }{
	{"kind", ""},
	{"effect", ""},
	{"internal/terms", ""},
	{"internal/problems", ""},
	{"internal/reasons", "kind"},
	{"internal/grants", "effect internal/suggest"},
	{"internal/address", ""},
	{"internal/export", "journal"},
	{"internal/evidence", "journal"},
	{"internal/view", "call internal/text internal/tree journal llm"},
	{"internal/progress", ". internal/text internal/view internal/tree"},
	{"schema", "internal/fields internal/pattern"},
	{"event", "budget internal/bounds internal/jsonv2 internal/lines schema"},
	{"x/internal/spans", "event"},
	{"internal/lines", ""},
	{"internal/trace", "event internal/jsonv2"},
	{"internal/jsonv2", ""},
	{"internal/fields", ""},
	{"internal/flock", ""},
	{"internal/bounds", ""},
	{"internal/canon", "internal/bounds internal/fields internal/jsonv2"},
	{"internal/notice", ""},
	{"sandbox", "internal/notice"},
	{"internal/layers", ""},
	{"internal/dist", "cli cli/all"},
	{"serve/internal/metrics", ""},
	{"internal/money", ""},
	{"internal/webhook", ""},
	{"internal/owed", "budget"},
	{"internal/panics", ""},
	{"internal/prompts", "dag"},
	{"internal/pattern", ""},
	{"internal/regular", ""},
	{"internal/redact", ""},
	{"internal/retryafter", ""},
	{"internal/fault", ""},
	{"internal/runvalue", ""},
	{"internal/sse", ""},
	{"internal/suggest", ""},
	{"internal/text", ""},
	{"internal/transport", ""},
	{"dag", "internal/canon internal/jsonv2 internal/terms kind schema"},
	{"step", "dag internal/terms"},
	{"ask", "schema"},
	{"internal/past", "ask dag effect internal/grants internal/terms kind step"},
	{".", "internal/past internal/terms internal/address ask dag effect event kind step internal/bounds internal/grants internal/fault internal/panics internal/queue internal/retryafter internal/runvalue internal/suggest"},

	{"internal/declared", ""},
	{"internal/queue", "step"},
	{"internal/record", "budget step internal/declared internal/terms"},
	{"internal/fleet", "budget dag internal/declared internal/transport internal/record"},
	{"journal/internal/outline", "internal/address budget step"},
	{"journal/internal/...", "journal journal/internal/outline internal/fleet internal/record"},
	{"journal/sqlite", "journal journal/internal/... internal/flock"},
	{"journal/postgres", "journal journal/internal/... internal/stores"},
	{"journal/...", "journal internal/fleet internal/record"},
	{"journal", ". internal/owed internal/fleet internal/record budget internal/tree internal/bounds internal/redact internal/text"},

	{"internal/limit", ""},
	{"internal/remote", "journal"},
	{"internal/filter", "internal/suggest internal/view journal"},
	{"internal/cases", "journal internal/past"},
	{"internal/batches", ". internal/owed journal"},
	{"llm/openai", "llm/internal/... internal/jsonv2"},
	{"llm/anthropic", "llm/internal/... internal/jsonv2"},
	{"llm/gemini", "llm/internal/... internal/jsonv2"},
	{"internal/structured", "llm schema"},
	{"llm/internal/rules", ""},
	{"llm/internal/...", "llm llm/internal/... internal/structured internal/jsonv2 internal/redact internal/retryafter internal/sse internal/transport"},
	{"llm/script", "llm internal/redact internal/retryafter internal/suggest internal/text internal/transport"},
	{"llm/...", "llm llm/internal/... internal/redact"},
	{"llm", "event kind internal/limit internal/fault internal/transport llm/internal/rules"},

	{"budget", "internal/bounds internal/reasons internal/terms internal/declared internal/fault internal/money"},
	{"internal/form", "internal/edn internal/suggest"},
	{"internal/kinds", "internal/regular call internal/redact llm sandbox"},
	{"call/answers", "call/model internal/suggest internal/text"},
	{"call/...", "internal/asked internal/regular call sandbox internal/kinds internal/redact internal/retryafter internal/sse internal/transport llm internal/structured"},
	{"internal/asked", "internal/past llm"},
	{"call", ". internal/marked budget internal/redact internal/structured internal/reasons internal/terms internal/limit internal/asked internal/bounds internal/prompts internal/form internal/edn internal/panics internal/record internal/retryafter internal/suggest"},
	{"internal/marked", "."},
	{"plan", "call internal/kinds"},

	{"x/eval", "call sandbox internal/past internal/tree internal/canon internal/edn internal/form internal/kinds internal/prompts internal/suggest internal/text"},
	{"internal/tree", ". schema internal/prompts internal/suggest"},
	{"agent", ". internal/marked budget internal/redact internal/asked internal/past internal/reasons internal/terms internal/prompts internal/text llm internal/structured"},
	{"tool", "agent"},
	{"tool/plan", "plan tool"},
	{"tool/...", "tool sandbox internal/redact internal/text"},
	{"stonetest", "agent call llm/script llm/openai llm/anthropic llm/gemini internal/test/eventtest"},

	{"x/cel", "call internal/kinds x/cel/internal/expr"},
	{"x/cel/internal/expr", "internal/canon internal/suggest schema"},
	{"x/mcp", "tool sandbox call internal/kinds internal/redact internal/text internal/trust"},
	{"x/mcp/server", "serve internal/inside internal/answers"},
	{"x/acp", "serve internal/inside llm internal/view internal/turn"},
	{"x/acp/harness", ". ask effect event internal/fault kind call internal/kinds internal/redact sandbox"},
	{"x/gateway", "effect internal/protocol x/gateway/internal/openai x/gateway/internal/anthropic"},
	{"x/gateway/internal/openai", "internal/canon internal/protocol internal/structured"},
	{"x/gateway/internal/anthropic", "x/gateway/internal/openai"},
	{"x/ui", "internal/protocol internal/bounds internal/view x/ui/internal/agui x/ui/internal/uistream"},
	{"x/ui/internal/...", "llm internal/turn"},
	{"x/retrieve", ". budget llm internal/redact"},
	{"x/retrieve/search", "call internal/kinds internal/redact llm x/retrieve x/retrieve/sqlite"},
	{"x/retrieve/searchtool", "tool x/retrieve"},
	{"x/retrieve/commands", "internal/library internal/redact internal/text x/retrieve x/retrieve/pdf x/retrieve/search x/retrieve/sqlite"},
	{"x/retrieve/internal/storetest", "x/retrieve llm/script"},
	{"x/retrieve/sqlite", "x/retrieve internal/flock"},
	{"x/retrieve/postgres", "x/retrieve internal/stores"},
	{"x/retrieve/...", "x/retrieve"},
	{"x/solve/...", "call internal/kinds internal/redact sandbox"},
	{"x/kpi", "budget call internal/command internal/money internal/progress internal/text journal"},
	{"x/eval/commands", "call internal/command internal/filter internal/money internal/past internal/progress internal/text internal/view x/eval"},
	{"x/batch", ". budget internal/batches internal/declared internal/owed internal/redact internal/remote internal/retryafter internal/transport journal llm"},
	{"x/evidence", "dag internal/canon internal/evidence internal/text journal step"},
	{"x/otlp", "event internal/bounds internal/form internal/kinds internal/redact internal/retryafter internal/telemetry x/internal/spans"},
	{"x/lab", "journal internal/canon internal/cases internal/past internal/record internal/terms"},
	{"x/marks", ". effect internal/address internal/form internal/grants internal/kinds internal/marked schema"},
	{"x/screen", "internal/display x/screen/internal/tui"},
	{"x/screen/internal/tui", "internal/display internal/progress internal/text internal/view"},

	{"internal/test/need", ""},
	{"internal/test/openapi", "journal serve/api"},
	{"internal/test/boxtest", "internal/test/need sandbox"},
	{"internal/test/eventtest", "event"},
	{"internal/test/journaltest", "journal internal/fleet internal/record"},
	{"internal/test/memdb", "journal/sqlite"},
	{"internal/test/memdir", "internal/test/need"},
	{"internal/test/peer", "internal/test/need"},
	{"internal/test/pgtest", "internal/test/memdir internal/test/need"},
	{"internal/test/servetest", "internal/test/memdb journal serve"},
	{"internal/test/year", "journal internal/test/cputime"},
	{"internal/test/...", ""},

	{"internal/turn", "ask event llm journal schema serve/api"},
	{"internal/talk", ". agent call internal/tree serve/api internal/structured"},
	{"internal/protocol", ". call llm event journal internal/talk internal/turn serve/api"},
	{"internal/inside", "serve"},
	{"internal/edn", "internal/bounds internal/jsonv2"},
	{"cli/internal/config", "internal/webhook plan call/answers call/command call/model call/rest llm/openai llm/anthropic llm/gemini"},
	{"internal/display", "."},
	{"internal/telemetry", "event internal/kinds"},
	{"internal/library", ". call llm"},
	{"internal/command", ". call event internal/cases internal/stores journal plan"},
	{"cli/internal/publish", "internal/batches journal call cli/internal/token"},
	{"internal/respond", "journal call internal/structured"},
	{"cli/internal/token", "internal/regular budget internal/grants internal/flock"},
	{"internal/stores", "journal"},
	{"cli/internal/...", "internal/regular . internal/text internal/tree"},
	{"internal/...", "internal/regular . internal/text internal/tree"},
	{"serve/api", "journal internal/problems internal/retryafter internal/sse"},
	{"serve/internal/page", "journal internal/filter internal/export call llm serve/api internal/answers internal/progress internal/text internal/view"},
	{"serve", "journal internal/batches internal/filter call internal/owed internal/remote internal/tree internal/jsonv2 serve/internal/metrics internal/webhook internal/respond serve/api internal/protocol serve/internal/page internal/view"},
	{"cli/serve", "agent call serve internal/inside cli/internal/publish cli/internal/token"},
	{"cli/all", "cli cli/serve call/... journal/postgres x/..."},
	{"cli", "*"},
	{"cmd/...", "*"},
	{"examples", ""},
	{"examples/...", "*"},
}

// leaves are packages for an external system, or for tests only. They never import each
// other.
var leaves = []string{"llm/openai", "llm/anthropic", "llm/gemini", "llm/script", "tool/fs", "tool/shell", "x/mcp", "journal/sqlite", "journal/postgres", "x/retrieve/sqlite", "x/retrieve/postgres", "x/retrieve/pdf", "x/otlp"}

type pkg struct {
	ImportPath, Dir, Name, Doc string
	Imports                    []string
	TestImports, XTestImports  []string
}

func load(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Name,Doc,Imports,TestImports,XTestImports", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// local returns the path of a package within the module.
func local(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

func fits(pattern, name string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(name, below+"/")
	}
	return pattern == "*" || pattern == name
}

// may collects the patterns that the packages that fit a pattern may import.
func may(pattern string, into map[string]bool) {
	for _, line := range table {
		if line.pkg != pattern && !fits(line.pkg, pattern) {
			continue
		}
		for _, p := range strings.Fields(line.imports) {
			if !into[p] {
				into[p] = true
				may(p, into)
			}
		}
		return
	}
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range load(t) {
		name, _ := local(p.ImportPath)
		if !slices.ContainsFunc(table, func(l struct{ pkg, imports string }) bool { return fits(l.pkg, name) }) {
			t.Errorf("%s is missing in the table: add it to a layer", p.ImportPath)
			continue
		}
		patterns := map[string]bool{}
		may(name, patterns)
		for _, path := range p.Imports {
			imported, ours := local(path)
			if !ours {
				continue
			}
			allowed := false
			for pattern := range patterns {
				allowed = allowed || fits(pattern, imported)
			}
			if !allowed {
				t.Errorf("%s imports %s, which its layer does not allow", p.ImportPath, path)
			}
			if slices.Contains(leaves, name) && slices.Contains(leaves, imported) {
				t.Errorf("%s imports %s: leaves never import each other", p.ImportPath, path)
			}
		}
	}
}

// light are the modules that a program with cli.Main may link, and heavy the packages
// of this module that it may not. Both limit the size of programs.
var (
	light = []string{
		"github.com/dlclark/regexp2/v2", "github.com/dustin/go-humanize", "github.com/go-json-experiment/json", "github.com/google/uuid", "github.com/remyoudompheng/bigfft",
		"github.com/santhosh-tekuri/jsonschema/v6", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys", "golang.org/x/term",
		"golang.org/x/text", "modernc.org/libc", "modernc.org/mathutil", "modernc.org/memory", "modernc.org/sqlite",
	}
	heavy = []string{"agent", "journal/postgres", "stonetest", "tool/...", "x/..."}
)

func TestProgramsAreLight(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if .Module}}{{.ImportPath}} {{.Module.Path}}{{end}}", module+"/cli").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		path, of, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, ours := local(path)
		switch {
		case !ours && !slices.Contains(light, of):
			t.Errorf("a program with cli.Main links %s of %s", path, of)
		case ours && slices.ContainsFunc(heavy, func(p string) bool { return fits(p, name) }):
			t.Errorf("a program with cli.Main links %s", path)
		}
	}
}

// unstable has no stable version, so only one package may import it.
const unstable = "github.com/go-json-experiment/json"

func TestOnePackageImportsWhatIsUnstable(t *testing.T) {
	for _, p := range load(t) {
		for _, path := range p.Imports {
			if strings.HasPrefix(path, unstable) && p.ImportPath != module+"/internal/jsonv2" {
				t.Errorf("%s imports %s: use internal/jsonv2", p.ImportPath, path)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range load(t) {
		if p.Doc == "" && p.Name != "main" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// vocabulary is the root package's maximum number of exported names.
const vocabulary = 60

func TestVocabularyStaysSmall(t *testing.T) {
	names := exported(t, "../..")
	if len(names) > vocabulary {
		t.Errorf("the root package exports %d names, at most %d: %s", len(names), vocabulary, strings.Join(names, " "))
	}
}

// exported lists the package-level names that the files of a directory export.
func exported(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for name := range file.Scope.Objects {
			if ast.IsExported(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
