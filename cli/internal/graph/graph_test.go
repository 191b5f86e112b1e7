package graph

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/need"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the drawings into testdata")

var (
	word  = dag.NewType[string]("word")
	item  = dag.NewType[int]("item")
	reply = dag.NewType[stone.Answer]("reply")
)

func step(name string) stone.Ashlar {
	return stone.Func0(name, word, func(context.Context) (string, error) { return "", nil })
}

func seq(names ...string) stone.Ashlar {
	var steps []stone.Ashlar
	for _, name := range names {
		steps = append(steps, step(name))
	}
	return stone.Seq("seq", steps...)
}

func pick(bug, ask stone.Ashlar) stone.Ashlar {
	return stone.Match("pick", stone.On(word, func(s string) string { return s }), stone.Case("bug", bug), stone.Case(7, ask))
}

var items = dag.ReaderFunc(func(dag.DAG) ([]int, error) { return nil, nil })

// A flow is drawn as the equivalent sequence.
func TestFlowIsDrawnAsSeq(t *testing.T) {
	drawn := func(make func(string, ...stone.Ashlar) stone.Ashlar) string {
		g, err := Of(make("all", step("one"), seq("two", "three"), step("four")))
		if err != nil {
			t.Fatal(err)
		}
		return g.Mermaid()
	}
	if diff := cmp.Diff(drawn(stone.Seq), drawn(stone.Flow)); diff != "" {
		t.Errorf("drawing (-seq +flow):\n%s", diff)
	}
}

// pipelines are drawn into testdata/NAME.txtar.
var pipelines = map[string]stone.Ashlar{
	"leaf":  step("one"),
	"empty": stone.Seq("empty"),
	"seq":   stone.Seq("all", step("one"), seq("two", "three"), step("four")),
	"loop":  stone.Seq("all", step("before"), stone.Loop("until", pick(step("x"), step("y")), nil, 3), step("after")),
	"match": stone.Seq("all", step("before"), pick(seq("one", "two"), stone.Ask[struct{}]("ask", dag.Nothing, reply, nil)), step("after")),
	"fan": stone.Seq("all", stone.Map("map", items, item, seq("one", "two")), stone.Reduce(step("join")),
		stone.Parallel("parallel", step("left"), stone.Map("inner", items, item, step("lane"))), stone.Reduce(seq("first", "second"))),
	"rescue": stone.Seq("all", step("before"), stone.Rescue("outer", stone.Rescue("inner", step("try"), step("heal")), step("give-up")), step("after")),
	"scoped": stone.Seq("all", step("before"), stone.Scoped("scoped", stone.Walk{}.InOrder(step("one"), seq("two", "three")), nil), step("after")),
	"names": stone.Seq("all", step(`"quoted" \n back\slash`), step("<b>&amp;#35;`x`"), step("two\nlines\x1b[1m"), step("end"), step("größe 表"),
		stone.Match(`{"}`, stone.Lens("x"), stone.Case(`a|b"`, step("graph")), stone.Case(map[string]int{"k": 1}, step("")))),
}

func TestDrawings(t *testing.T) {
	for name, p := range pipelines {
		t.Run(name, func(t *testing.T) {
			g, err := Of(p)
			if err != nil {
				t.Fatal(err)
			}
			got := txtar.Format(&txtar.Archive{Files: []txtar.File{{Name: "mermaid", Data: []byte(g.Mermaid())}, {Name: "dot", Data: []byte(g.DOT())}}})
			file := filepath.Join("testdata", name+".txtar")
			if *update {
				if err := os.WriteFile(file, got, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s: -want +got\n%s", file, diff)
			}
		})
	}
}

func TestGraphvizReadsAll(t *testing.T) {
	need.Program(t, "dot") // of graphviz
	for name, p := range pipelines {
		g, err := Of(p)
		if err != nil {
			t.Fatal(err)
		}
		svg, err := g.SVG(t.Context())
		if err != nil || !strings.Contains(string(svg), "</svg>") {
			t.Errorf("%s: %v\n%s", name, err, svg)
		}
	}
}

func TestSVGWithoutGraphviz(t *testing.T) {
	t.Setenv("PATH", "")
	g, err := Of(step("one"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.SVG(t.Context()); !errors.Is(err, ErrNoGraphviz) {
		t.Errorf("got %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	p := seq("one", "two")
	for range 40 { // 2^40 places
		p = stone.Seq("twice", p, p)
	}
	if _, err := Of(p); err == nil || !strings.Contains(err.Error(), "more than 20000") {
		t.Errorf("got %v", err)
	}
}
