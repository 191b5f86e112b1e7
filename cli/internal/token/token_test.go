package token

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "dir", "tokens.json")
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := f.Create(Token{Name: "ci", Tenant: "acme", Roles: []string{"read"}, Expires: now.Add(time.Hour)}, now)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(name); err != nil || strings.Contains(string(data), secret) || strings.Contains(string(data), secret[len(Prefix):]) {
		t.Errorf("the file has the secret, or %v: %s", err, data)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	other, err := Open(name) // of another process
	if err != nil {
		t.Fatal(err)
	}
	find := func(secret string, at time.Time, want bool) {
		t.Helper()
		if got, ok, err := other.Find(secret, at); err != nil || ok != want || ok && (got.Name != "ci" || got.Tenant != "acme") {
			t.Errorf("found %+v, %v, %v, want %v", got, ok, err, want)
		}
	}
	find(secret, now, true)
	find(secret+"x", now, false)
	find("", now, false)
	find(secret, now.Add(time.Hour), false)
	if err := f.Revoke("ci"); err != nil {
		t.Fatal(err)
	}
	find(secret, now.Add(2*time.Second), false)
	if err := f.Revoke("ci"); err == nil {
		t.Error("a token was revoked twice")
	}
	// Nobody is let in because the last token was revoked.
	if exists, err := other.Exists(now.Add(2 * time.Second)); err != nil || !exists {
		t.Errorf("the file exists: %v, %v", exists, err)
	}
}

// A file that others may read stays readable for them when it changes.
func TestMode(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tokens.json")
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []os.FileMode{0o600, 0o644} {
		if _, err := f.Create(Token{Name: fmt.Sprint("t", i), Roles: []string{"read"}}, now); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("the mode is %v, %v, want %v", info.Mode(), err, want)
		}
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A token that allows no effect keeps allowing none.
func TestEmptyGrant(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tokens.json")
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	for grant, want := range map[string][]string{"none": {}, "all": nil} {
		secret, err := f.Create(Token{Name: grant, Roles: []string{"start"}, Grant: want}, now)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok, err := again.Find(secret, now); err != nil || !ok || (got.Grant == nil) != (want == nil) {
			t.Errorf("%s: %v, %v, %v", grant, got.Grant, ok, err)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create(Token{Name: "a", Roles: []string{"read"}}, now); err != nil {
		t.Fatal(err)
	}
	for want, tok := range map[string]Token{
		`token "a" already exists`: {Name: "a", Roles: []string{"read"}},
		`the name "A b"`:           {Name: "A b", Roles: []string{"read"}},
		`the tenant "x.y"`:         {Name: "b", Tenant: "x.y", Roles: []string{"read"}},
		`unknown role "write"`:     {Name: "b", Roles: []string{"write"}},
		`a token without a role`:   {Name: "b"},
		`did you mean "process"`:   {Name: "b", Roles: []string{"act"}, Grant: []string{"proces"}},
	} {
		if _, err := f.Create(tok, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", tok, err, want)
		}
	}
	if all, err := f.List(); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(name, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(name); err == nil || !strings.Contains(err.Error(), "is not a file of tokens") {
		t.Error(err)
	}
}

// No token is lost when several processes create and revoke tokens concurrently.
func TestConcurrentChanges(t *testing.T) {
	name := filepath.Join(t.TempDir(), "new", "tokens.json")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			f, err := Open(name) // as another process does
			if err == nil {
				_, err = f.Create(Token{Name: fmt.Sprintf("t%d", i), Roles: []string{"read"}}, now)
			}
			if err == nil && i%2 == 0 {
				err = f.Revoke(fmt.Sprintf("t%d", i))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := f.List(); err != nil || len(kept) != 10 {
		t.Errorf("%d tokens are kept, want 10: %v", len(kept), err)
	}
}
