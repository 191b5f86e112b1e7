package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Whoever writes a plan is told nothing in words of Go. A message about a dag.Type cannot be caused by a plan.
func TestMessagesInWordsOfPlans(t *testing.T) {
	files, err := filepath.Glob("../validate*.go")
	if err != nil {
		t.Fatal(err)
	}
	inGo := regexp.MustCompile(`\b(dag|stone)\.[A-Z]|\bReduce\b|\bRescue\b|AllLanes|Quorum\(`)
	seen := 0
	for _, file := range append(files, "../dag/query.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(text, " ") && inGo.MatchString(text) && (!strings.Contains(text, "dag.Type") || strings.Contains(text, "one dag.Type")) {
					seen++
					if said := planWords.Replace(text); inGo.MatchString(said) {
						t.Errorf("%s: a plan is told %q", file, said)
					}
				}
			}
			return true
		})
	}
	if seen < 10 {
		t.Errorf("only %d messages in words of Go were found", seen)
	}
}
