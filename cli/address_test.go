package cli

import (
	"os"
	"slices"
	"testing"

	"github.com/stonelayer/stone/internal/redact"
)

// The password of --db goes to the environment, and one of the environment stays there.
func TestStoreFlag(t *testing.T) {
	const seen = "postgres://u@h/n?sslmode=require"
	for _, c := range []struct{ before, flag, name, after string }{
		{"", "runs.db", "runs.db", ""},
		{"", "postgres://u:new@h/n?sslmode=require", seen, "postgres://u:new@h/n?sslmode=require"},
		{"postgres://u:old@h/n?sslmode=require", "postgres://u:new@h/n?sslmode=require", seen, "postgres://u:new@h/n?sslmode=require"},
		{"postgres://u:old@h/n?sslmode=require", seen, seen, "postgres://u:old@h/n?sslmode=require"},
		{"postgres://u:old@other/n", seen, seen, seen},
		{"", "postgres://u@h/n?password=new&sslmode=require", seen, "postgres://u@h/n?password=new&sslmode=require"},
		{"", "postgres://u:new@%zz/n", "postgres://", "postgres://u:new@%zz/n"},
	} {
		t.Setenv(storeEnv, c.before)
		var name string
		if err := (storeFlag{&name, storeEnv}).Set(c.flag); err != nil || name != c.name || os.Getenv(storeEnv) != c.after {
			t.Errorf("--db %s with STONE_DB=%s: %s and %s, %v; want %s and %s", c.flag, c.before, name, os.Getenv(storeEnv), err, c.name, c.after)
		}
		if full := redact.FullDatabase(name, storeEnv, false); redact.IsDatabase(name) && full != c.after {
			t.Errorf("--db %s opens %s, want %s", c.flag, full, c.after)
		}
	}
	args := []string{"index", "--index", "postgres://u:p@h/n", "--index=postgres://u:p@h/n", "--db", "postgres://u:p@h/n", "--db=postgres://u:p@h/n", ".", "--", "--db=postgres://u:p@h/n"}
	want := []string{"index", "--index", "postgres://u@h/n", "--index=postgres://u@h/n", "--db", "postgres://u@h/n", "--db=postgres://u@h/n", ".", "--", "--db=postgres://u:p@h/n"}
	if got := secretless(args); !slices.Equal(got, want) {
		t.Errorf("the program is given %q, want %q", got, want)
	}
}
