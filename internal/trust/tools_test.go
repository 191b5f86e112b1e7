package trust

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTools(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("HOME", home)
	s, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(server, accepted, refused string) {
		t.Helper()
		got, err := s.Tools(project, server)
		check(err)
		if string(got.Accepted["read"]) != accepted || got.Refused["read"].Changes != refused {
			t.Errorf("%s: got %s and %v, want %q and %q", server, got.Accepted, got.Refused, accepted, refused)
		}
	}
	want("a", "", "")
	check(s.Accept(project, "a", map[string]json.RawMessage{"read": json.RawMessage(`1`)}))
	check(s.Refuse(project, "a", map[string]Refused{"read": {json.RawMessage(`2`), "more"}}))
	want("a", "1", "more")
	want("b", "", "")
	accepted, err := s.AcceptRefused(project, "a")
	check(err)
	if len(accepted) != 1 {
		t.Errorf("accepted %v", accepted)
	}
	want("a", "2", "")
	info, err := os.Stat(filepath.Join(home, "stone", "tools.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	none, err := s.Tokens(project, "a")
	check(err)
	check(s.SetTokens(project, "a", []byte(`{"token":1}`)))
	some, err := s.Tokens(project, "a")
	check(err)
	file, err := s.tokens(project, "a")
	check(err)
	if info, err := os.Stat(file); none != nil || !strings.Contains(string(some), `"token": 1`) || err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s and %s, %v, %v", none, some, info, err)
	}
	check(os.WriteFile(s.tools(), []byte("{"), 0o600))
	if _, err := s.Tools(project, "a"); err == nil || !strings.Contains(err.Error(), s.tools()) {
		t.Errorf("a damaged file: %v", err)
	}
	check(os.WriteFile(s.tools(), []byte("null"), 0o600))
	want("a", "", "")
}
