package cli_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

var poem = dag.NewType[agent.Text]("poem")

// poet asks the model that the user chooses.
func poet() stone.Ashlar {
	return agent.New("poet", poem, cli.DefaultModel(), agent.Config{
		User: agent.Say("Write a haiku about stone."),
	})
}

// inProject makes a project with settings and goes into a directory of it.
func inProject(t *testing.T, settings string) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	for _, name := range []string{"STONE_PROVIDER", "STONE_MODEL", "STONE_URL"} {
		t.Setenv(name, "")
	}
	deep := filepath.Join(dir, "a", "b")
	for _, d := range []string{deep, filepath.Join(dir, ".stone")} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".stone", "settings.json"), []byte(settings), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
}

func TestDefaultModel(t *testing.T) {
	model := script.Func(func(int, *llm.Request) script.Answer { return script.Text("Grey, and it is old.") })
	server := httptest.NewServer(model)
	defer server.Close()
	t.Setenv("OPENAI_API_KEY", "none")
	t.Setenv("ANTHROPIC_API_KEY", "none")
	p := poet() // before anything is chosen
	run := func(wantModel string) {
		t.Helper()
		res, err := stone.Run(t.Context(), p, stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Node.Text(); got != "Grey, and it is old." {
			t.Errorf("the poem is %q", got)
		}
		requests := model.Requests()
		if got := requests[len(requests)-1].Model; got != wantModel {
			t.Errorf("model %q was asked, want %q", got, wantModel)
		}
	}
	inProject(t, `{"model": "small", "url": "`+server.URL+`"}`)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if _, err := stone.Run(t.Context(), p, stone.Config{}); err == nil || !strings.Contains(err.Error(), "is not trusted") || len(model.Requests()) > 0 {
		t.Fatalf("an untrusted address: %v, %d requests", err, len(model.Requests()))
	}
	t.Setenv("STONE_TRUST", "1")
	run("small")
	t.Setenv("STONE_MODEL", "large")
	run("large")
	t.Setenv("STONE_PROVIDER", "anthropic")
	if info := cli.DefaultModel().(llm.Informer).Info(); info.Provider != "anthropic" || info.Model != "large" {
		t.Errorf("the model is %+v", info)
	}
	run("large")
}

func TestDefaultModelThatIsNone(t *testing.T) {
	for settings, want := range map[string]string{
		`{}`:                 `no model is chosen: set STONE_MODEL, or "model" in .stone/settings.json`,
		`{"modle": "small"}`: `settings.json:1:2: modle: unknown field modle; known are key, model, pipeline, provider, url; did you mean "model"?`,
	} {
		inProject(t, settings)
		_, err := stone.Run(t.Context(), poet(), stone.Config{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", settings, err, want)
		}
		if _, err := llm.Collect(t.Context(), cli.DefaultModel(), &llm.Request{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: asked all the same: %v", settings, err)
		}
	}
}
