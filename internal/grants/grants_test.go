package grants_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stonelayer/stone/internal/grants"
)

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		needed string
		grant  []string
		want   bool
	}{
		{"net", nil, true},
		{"net", []string{}, false},
		{"none", []string{}, true},
		{"net", []string{"net"}, true},
		{"net/http", []string{"net"}, true},
		{"net", []string{"net/http"}, false},
		{"network", []string{"net"}, false},
		{"net", []string{"network"}, false},
		{"fs/read", []string{"fs/write", "fs/read"}, true},
		{"fs/read", []string{"fs/"}, false},
		{"", []string{"net"}, false},
		{"/x", []string{""}, false},
		{"", []string{""}, false},
	} {
		if got := grants.Allowed(c.needed, c.grant); got != c.want {
			t.Errorf("Allowed(%q, %q) = %v", c.needed, c.grant, got)
		}
	}
}

// Narrow allows an effect exactly if both grants allow it.
func TestNarrow(t *testing.T) {
	all := [][]string{nil, {}, {"net"}, {"net/http"}, {"net/http", "fs"}, {"fs/read", "process"}, {"fs", "net", "ask"}, {"fs", "fs/read"}}
	needs := append(grants.Known(), "net/http", "net/smtp", "db/write")
	for _, a := range all {
		for _, b := range all {
			both := grants.Narrow(a, b)
			for _, e := range needs {
				if got, want := grants.Allowed(e, both), grants.Allowed(e, a) && grants.Allowed(e, b); got != want {
					t.Errorf("Narrow(%q, %q) = %q: allows %s: %v, want %v", a, b, both, e, got, want)
				}
			}
		}
	}
	if missing := grants.Missing([]string{"net/http", "process", "none"}, []string{"net"}); !slices.Equal(missing, []string{"process"}) {
		t.Errorf("missing: %q", missing)
	}
}

func TestCheck(t *testing.T) {
	for _, name := range append(grants.Known(), "none", "net/http", "process/exec", "db/write", "gpu/use/much") {
		if err := grants.Check(name); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]string{"fs/wirte": "fs/write", "proces": "process", "Net": "net", "network": "", "fs/": "fs", "": "", "/x": "", "db/": ""} {
		var unknown *grants.UnknownError
		if err := grants.Check(name); !errors.As(err, &unknown) || unknown.Suggestion != want {
			t.Errorf("Check(%q) = %v, want the suggestion %q", name, err, want)
		}
	}
}
