package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/kinds"
)

func TestModelTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stone.edn")
	err := os.WriteFile(file, []byte(`{:capabilities {:a {:cap/kind :llm :provider :openai :model "m"} :b {:cap/kind :llm :provider :openai :model "n"} :c {:cap/kind :llm :provider :openai :model "p"}}
		:models [{:model "m" :date "2026-08-23" :usd-per-mtok-in 3 :usd-per-mtok-out 15 :usd-per-mtok-cache-read 0.3 :usd-per-mtok-cache-write 3.75 :window 200000 :can #{:tools}}
			{:model "p" :date "2026-08-24" :window 8000}
			{:model "o" :date "2026-11-01" :usd-per-mtok-in 0 :usd-per-mtok-out 0}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := config.Load(file, &kinds.Set{})
	if err != nil {
		t.Fatal(err)
	}
	defer conf.Close()
	rows, warnings := modelTable(conf, time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
	want := []string{
		"b calls n of openai, which has no row under :models",
		"c calls p of openai, which has no price: a budget over USD refuses it",
		"the row of m dates from 2026-08-23: check its figures again",
		"no capability calls o",
	}
	if !slices.Equal(warnings, want) {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
	var out strings.Builder
	if err := modelRows(rows).print(&out, 0); err != nil {
		t.Fatal(err)
	}
	first := strings.Join(strings.Fields(strings.Split(out.String(), "\n")[1]), " ")
	if first != "m 200000 3 15 0.3 3.75 tools 2026-08-23 a" {
		t.Errorf("the first row is %q", first)
	}
}
