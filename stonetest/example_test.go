package stonetest_test

import (
	"context"
	"fmt"
	"os"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/stonetest"
	"github.com/stonelayer/stone/tool"
)

type SiteDoc struct {
	Path string `json:"path"`
}

type ReportDoc struct {
	Language string `json:"language"`
}

var (
	Site   = dag.NewType[SiteDoc]("site")
	Report = dag.NewType[ReportDoc]("report")
)

type readInput struct {
	Name string `json:"name" jsonschema:"the file to read"`
}

// Survey is the pipeline that is tested.
func Survey(model llm.Model) stone.Ashlar {
	read := tool.Func("read_file", "Reads a file.", func(_ context.Context, in readInput) (string, error) {
		text, err := os.ReadFile(in.Name)
		return string(text), err
	})
	return stone.Seq("survey", agent.New("look", Report, model, agent.Config{
		System: agent.Say("You tell in which language a project is written."),
		User:   agent.Prompt(Site, func(s SiteDoc) string { return "The project is in " + s.Path }),
		Use:    []agent.Middleware{read},
	}))
}

func Example() {
	t := new(fakeT) // in a test, use its *testing.T

	h := stonetest.Mock(t,
		stonetest.Call("read_file", `{"name":"go.mod"}`),
		stonetest.JSON(ReportDoc{Language: "Go"}),
	)
	h.Strict = true
	p := stonetest.Stub(t, Survey(h.Model()), "read_file", stonetest.Answer("module example.com/site"))
	res := h.Run(p, dag.Of(Site.With(SiteDoc{Path: "/srv/site"})))

	h.CallCount("read_file", 1)
	fmt.Println(stonetest.Nearest(t, Report, res.DAG).Language)
	fmt.Println(h.Calls()[0])
	// Output:
	// Go
	// look/read_file {"name":"go.mod"} → module example.com/site
}
