package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/x/marks"
)

func TestMarks(t *testing.T) {
	for _, c := range []struct {
		text string
		want marks.Policy
		err  string
	}{
		{"{}", nil, ""},
		{"{:marks {:web {:from #{:net :page}, :may #{:fs/read}, :lift #{:ask :closed}}}}",
			marks.Policy{"web": {From: []string{"net", "page"}, May: []string{"fs/read"}, Lift: []string{"ask", "closed"}}}, ""},
		{"{:marks {:web {:from #{:net}, :may #{:fs/raed}}}}", nil, `did you mean "fs/read"?`},
		{"{:marks {:web {:from #{:net}}}}", nil, "may"},
		{"{:marks {:web {:from #{:net}, :may #{}, :lifts #{}}}}", nil, `did you mean "lift"?`},
	} {
		file := filepath.Join(t.TempDir(), "stone.edn")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var linked kinds.Set
		linked.Add(marks.Part)
		conf, err := Load(file, &linked)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.text, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		got, _ := conf.Policy.(marks.Policy)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
}
