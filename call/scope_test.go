package call_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stonelayer/stone/call"
)

func ExampleScope() {
	net := call.Net{"https://api.example.com"}
	for _, text := range []string{"https://API.example.com:443/v1", "http://api.example.com/v1", "https://example.com"} {
		u, _ := url.Parse(text)
		fmt.Println(net.Check(u))
	}
	fmt.Println(call.Process{}.Check("/bin/sh"))
	// Output:
	// <nil>
	// the server http://api.example.com:80 is not in scope: https://api.example.com
	// the server https://example.com:443 is not in scope: https://api.example.com
	// the program /bin/sh is not in scope: the list is empty
}

func TestFS(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, other := filepath.Join(base, "root"), filepath.Join(base, "root-other")
	for _, err := range []error{os.MkdirAll(filepath.Join(root, "in"), 0o755), os.MkdirAll(other, 0o755),
		os.Symlink(other, filepath.Join(root, "out")), os.Symlink(root, filepath.Join(base, "link")), os.Symlink(filepath.Join(other, "nothing"), filepath.Join(root, "dangling"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		scope call.FS
		path  string
		ok    bool
	}{
		{nil, "/etc", true},
		{call.FS{}, root, false},
		{call.FS{root}, root, true},
		{call.FS{root}, filepath.Join(root, "in"), true},
		{call.FS{root}, filepath.Join(root, "new"), true},
		{call.FS{filepath.Join(base, "link")}, filepath.Join(root, "in"), true},
		{call.FS{root}, filepath.Join(base, "link", "in"), true},
		{call.FS{root}, filepath.Join(root, "..", "root-other"), false},
		{call.FS{root}, filepath.Join(root, "out"), false},
		{call.FS{root}, filepath.Join(root, "out", "new"), false},
		{call.FS{root}, filepath.Join(root, "dangling"), false},
		{call.FS{root}, other, false},
		{call.FS{root}, "/", false},
	} {
		if _, err := test.scope.Resolve(test.path); (err == nil) != test.ok {
			t.Errorf("%v %s: %v, want ok %v", test.scope, test.path, err, test.ok)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		scope call.Scope
		ok    bool
	}{
		{call.Scope{}, true},
		{call.Scope{FS: call.FS{"/srv"}, Process: call.Process{"/bin/true"}, Net: call.Net{"https://example.com", "http://[::1]:80/"}}, true},
		{call.Scope{FS: call.FS{"srv"}}, false},
		{call.Scope{Process: call.Process{"true"}}, false},
		{call.Scope{Net: call.Net{"example.com"}}, false},
		{call.Scope{Net: call.Net{"https://example.com/path"}}, false},
		{call.Scope{Net: call.Net{"https://u:p@example.com"}}, false},
	} {
		if err := test.scope.Check(); (err == nil) != test.ok {
			t.Errorf("%+v: %v, want ok %v", test.scope, err, test.ok)
		}
	}
	if err := (call.Process{"/usr/bin/../bin/true"}).Check("/usr/bin/true"); err != nil {
		t.Error(err)
	}
	if err := call.Process(nil).Check("true"); err == nil {
		t.Error("a program that is searched for is in scope")
	}
}
