package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/kinds"
)

// notLinked are configurations that need a kind; this program links none.
var notLinked = []struct{ name, text, at, home string }{
	{"mcp", `{:capabilities {:a {:cap/kind :mcp :server :s :tool "t"}}}`, `1:31: capabilities.a.cap/kind: the kind "mcp"`, "x/mcp"},
	{"servers", `{:servers {:s {:command ["/bin/true"]}}}`, `1:11: servers: "servers"`, "x/mcp"},
	{"marks", `{:marks {:web {:from #{:net} :may #{}}}}`, `1:9: marks: "marks"`, "x/marks"},
	{"chess", `{:capabilities {:a {:cap/kind :chess :command ["/bin/true"]}}}`, `1:31: capabilities.a.cap/kind: the kind "chess"`, "x/solve/uci"},
	{"acp", `{:capabilities {:a {:cap/kind :acp :command ["/bin/true"]}}}`, `1:31: capabilities.a.cap/kind: the kind "acp"`, "x/acp/harness"},
	{"sat", `{:tools {:a {:cap/kind :solver :solver :sat}}}`, `1:24: tools.a.cap/kind: the kind "solver/sat"`, "x/solve/sat"},
	{"cel", `{:capabilities {:a {:cap/kind :solver :solver :cel}}}`, `1:31: capabilities.a.cap/kind: the kind "solver/cel"`, "x/cel"},
	{"check", `{:checks {:short "size(out) < 3"}}`, `1:18: checks.short: "expression"`, "x/cel"},
	{"legal-move", `{:policy {:default {:done {:must #{:legal-move}}}}}`, `1:34: policy.default.done.must: the check "legal-move"`, "x/solve/uci"},
}

// A kind of another module is named with its part, and no program is built with it.
func TestNotLinkedOfOtherModule(t *testing.T) {
	file := write(t, `{:capabilities {:a {:cap/kind :a2a :url "http://127.0.0.1:1"}}}`)
	_, err := config.Load(file, &kinds.Set{})
	const want = `the kind "a2a" is not linked into this program: write a program that passes cli.Main the part of package github.com/stonelayer/stone/x/a2a/client, which is a separate module`
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got  %v\nwant …%s", err, want)
	}
	if paths, _ := config.Imports(file, &kinds.Set{}); len(paths) > 0 {
		t.Errorf("a program that uses it would link %v", paths)
	}
}

func TestNotLinked(t *testing.T) {
	for _, c := range notLinked {
		t.Run(c.name, func(t *testing.T) {
			home := "github.com/stonelayer/stone/" + c.home
			file := write(t, c.text)
			_, err := config.Load(file, &kinds.Set{})
			want := c.at + ` is not linked into this program: pass cli.Main the part of package ` + home + `, or the parts of github.com/stonelayer/stone/cli/all for all`
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("got  %v\nwant …%s", err, want)
			}
			if paths, _ := config.Imports(file, &kinds.Set{}); !cmp.Equal(paths, []string{home}) {
				t.Errorf("a program that uses it would link %v, want %s", paths, home)
			}
		})
	}
}

func TestImports(t *testing.T) {
	const text = `{:capabilities {:a {:cap/kind :llm :cap/can-produce #{:plan}} :b {:cap/kind :mcp} :c {:cap/kind :odd}} :tools {:d {:cap/kind :mcp}} :budget 7}`
	got, configured := config.Imports(write(t, text), &kinds.Set{})
	want := []string{"github.com/stonelayer/stone/x/cel", "github.com/stonelayer/stone/x/mcp"}
	if !cmp.Equal(got, want) || !configured {
		t.Errorf("got %v %v, want %v: those of a faulty configuration too", got, configured, want)
	}
	t.Chdir(t.TempDir())
	if got, configured := config.Imports("", &kinds.Set{}); len(got) > 0 || configured {
		t.Errorf("without a configuration: %v %v", got, configured)
	}
}

func TestUnconfigured(t *testing.T) {
	c, err := config.Nearest(t.TempDir(), &kinds.Set{})
	if err != nil {
		t.Fatal(err)
	}
	if ids := c.App.Registry.IDs(); len(ids) > 0 {
		t.Errorf("a program that links no kind has %v", ids)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stone.edn")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}
