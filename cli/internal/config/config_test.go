package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/test/need"
)

// project makes a directory with .stone in it and returns the path of that.
func project(t *testing.T, settings string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), config.Name)
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if settings != "" {
		if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(settings), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, settings, want string }{
		{"none", "", "DIR/.stone|||"},
		{"empty", "{}", "DIR/.stone|||"},
		{"all", `{"pipeline":"./a/b","provider":"anthropic","model":"m","url":"http://localhost:8000"}`, "DIR/a/b|anthropic|m|http://localhost:8000"},
		{"outside", `{"pipeline":"../x"}`, "UP/x|||"},
		{"absolute", `{"pipeline":"/x/y"}`, "/x/y|||"},
		{"typo", "{\n  \"modle\": \"m\"\n}", `FILE:2:3: modle: unknown field modle; known are key, model, pipeline, provider, url; did you mean "model"?`},
		{"case", `{"Model":"m"}`, `FILE:1:2: Model: unknown field Model; known are key, model, pipeline, provider, url; did you mean "model"?`},
		{"stranger", `{"frobnicate":1}`, `FILE:1:2: frobnicate: unknown field frobnicate; known are key, model, pipeline, provider, url`},
		{"secret", "{\"model\":\"m\",\n\"api_key\":\"sk-1\"}", `FILE:2:1: api_key: unknown field api_key: keep a secret in a variable such as OPENAI_API_KEY, or in a file, and name its place: {:env "NAME"} or {:file "path"}`},
		{"secret in url", `{"url":"https://me:sk-1@h/"}`, `FILE:1:8: url: expected an address without user and query: keep a secret in a variable such as OPENAI_API_KEY, or in a file, and name its place: {:env "NAME"} or {:file "path"}`},
		{"type", `{"model":1}`, `FILE:1:10: model: expected a string, found 1`},
		{"null", `{"model":null}`, `FILE:1:10: model: expected a string, found nil`},
		{"nothing", `{"model":""}`, `FILE:1:10: model: expected a non-empty string`},
		{"object", `{"model":{}}`, `FILE:1:10: model: expected a string, found a map`},
		{"provider", `{"provider":"acme"}`, `FILE:1:13: provider: unknown name "acme"; known are anthropic, gemini, openai, openai-chat, openai-responses`},
		{"url", `{"url":"localhost:8000"}`, `FILE:1:8: url: expected an address, such as "http://localhost:8000"`},
		{"list", `[]`, `FILE:1:1: expected a map, found a vector`},
		{"twice", `{"model":"m","model":"n"}`, `FILE:1:14: duplicate key "model" in a map, first at 1:2`},
		{"comma", "{\"model\":\"m\",\n}", `FILE:1:13: expected JSON: `},
		{"cut off", `{"model":`, `FILE:1:10: expected more JSON, found the end of the text`},
		{"no bytes", ` `, `FILE:1:2: expected a value, found the end of the text`},
		{"behind", `{} {}`, `FILE:1:4: expected the end of the text after its one value`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := project(t, c.settings)
			s, err := config.Read(dir)
			got := strings.Join([]string{s.Pipeline, s.Provider, s.Model, s.URL}, "|")
			if err != nil {
				if got != "|||" {
					t.Errorf("settings %q beside an error", got)
				}
				got = err.Error()
			}
			up := filepath.Dir(dir)
			want := strings.NewReplacer("DIR", up, "UP", filepath.Dir(up), "FILE", filepath.Join(dir, "settings.json")).Replace(c.want)
			if got != want && (err == nil || !strings.HasSuffix(want, ": ") || !strings.HasPrefix(got, want)) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if strings.Contains(got, "sk-1") {
				t.Error("the secret is shown")
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		s  config.Settings
		ok bool
	}{
		{config.Settings{}, true},
		{config.Settings{Provider: "openai", Model: "m", URL: "https://h/v1"}, true},
		{config.Settings{Provider: "opnai"}, false},
		{config.Settings{URL: "h"}, false},
	} {
		if err := c.s.Check(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
}

func TestFind(t *testing.T) {
	stone := project(t, "")
	root := filepath.Dir(stone)
	deep := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(deep, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Dir(root))
	find := func(dir, want string) {
		t.Helper()
		if got, err := config.Find(dir); err != nil || got != want {
			t.Errorf("from %s: %q, %v, want %q", dir, got, err, want)
		}
	}
	find(root, stone)
	find(deep, stone)
	find(filepath.Dir(root), "")
	t.Chdir(deep)
	find(".", stone)

	// The home directory ends the search, and counts itself.
	t.Setenv("HOME", filepath.Join(root, "a"))
	find(deep, "")
	t.Setenv("HOME", root)
	find(deep, stone)

	t.Run("file", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(deep, config.Name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Find(deep); err == nil || !strings.Contains(err.Error(), "is a file") {
			t.Errorf("got %v", err)
		}
	})
}

func TestFindOfAnotherUser(t *testing.T) {
	stone := project(t, "")
	if err := os.Chown(stone, 12345, 12345); err != nil {
		need.Absent(t, "giving a directory to another user needs root")
	}
	if got, err := config.Find(filepath.Dir(stone)); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("found %q, %v", got, err)
	}
}

// The configuration takes precedence over settings.json.
func TestReadBoth(t *testing.T) {
	dir := project(t, `{"model":"small","url":"http://localhost:1"}`)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("stone.edn", `{:model "large" :provider :anthropic :pipeline "./plan.edn" :capabilities {:not {:looked "at"}}}`)
	s, err := config.Read(dir)
	want := config.Settings{Pipeline: filepath.Join(filepath.Dir(dir), "plan.edn"), Provider: "anthropic", Model: "large", URL: "http://localhost:1"}
	if err != nil || s != want {
		t.Errorf("%+v, %v", s, err)
	}
	write("stone.json", `{}`)
	if _, err := config.Read(dir); err == nil || !strings.HasSuffix(err.Error(), "stone.json exist: keep one") {
		t.Error(err)
	}
	if _, err := config.Nearest(dir, &linked); err == nil || !strings.HasSuffix(err.Error(), "stone.json exist: keep one") {
		t.Error(err)
	}
}

// Without a configuration the solvers are available, which need none.
func TestNearestOfNone(t *testing.T) {
	c, err := config.Nearest(t.TempDir(), &linked)
	if err != nil || c.File != "" || strings.Join(c.App.Registry.IDs(), " ") != "solver/cel solver/sat" {
		t.Errorf("%+v, %v", c, err)
	}
}
