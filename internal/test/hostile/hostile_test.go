package hostile

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// scratch is removed when the tests of the package have ended.
var scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("left out by -short: these tests take minutes")
		os.Exit(0)
	}
	var err error
	if scratch, err = os.MkdirTemp("", "stone-hostile-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// command builds the command stone once.
var command = sync.OnceValues(func() (string, error) {
	file := filepath.Join(scratch, "stone")
	out, err := exec.Command("go", "build", "-trimpath", "-o", file, "../../../cmd/stone").CombinedOutput()
	if err != nil {
		err = errors.New(string(out))
	}
	return file, err
})

// A project is a folder of an attacker, and the environment of the user who runs
// stone in it.
type project struct {
	*testing.T
	dir string
	env []string // NAME=value
}

// newProject writes files, by their paths, into a new folder.
func newProject(t *testing.T, files map[string]string) *project {
	t.Helper()
	p := &project{T: t, dir: t.TempDir()}
	home := t.TempDir()
	p.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "TMPDIR=" + t.TempDir()}
	for name, text := range files {
		file := filepath.Join(p.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// result is the outcome of a process.
type result struct {
	stdout, stderr string
	code           int
}

// stone runs the command in the project's folder, with nothing at its input.
func (p *project) stone(args ...string) result {
	p.Helper()
	file, err := command()
	if err != nil {
		p.Fatal(err)
	}
	cmd := exec.CommandContext(p.Context(), file, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.Fatalf("stone %s: %v", strings.Join(args, " "), err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// touched reports whether a file exists, by its path in the project.
func (p *project) touched(name string) bool {
	_, err := os.Lstat(filepath.Join(p.dir, name))
	return err == nil
}

// A server counts what reaches it.
type server struct {
	*httptest.Server
	requests atomic.Int64
}

// newServer starts a server on the loopback interface.
func newServer(t *testing.T, h http.Handler) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// The fixtures distinguish a run that writes from one that is refused.
func TestFixtures(t *testing.T) {
	p := newProject(t, map[string]string{"p.edn": `{:nodes [{:op :emit :input {:a 1}}]}`})
	if r := p.stone("run", "--no-db", "p.edn"); r.code != 0 || !strings.Contains(r.stdout, "1") || p.touched("stone.db") {
		t.Errorf("%+v", r)
	}
	if r := p.stone("run", "missing.edn"); r.code == 0 {
		t.Errorf("%+v", r)
	}
	s := newServer(t, http.NotFoundHandler())
	if _, err := http.Get(s.URL); err != nil || s.requests.Load() != 1 {
		t.Errorf("%v, %d requests", err, s.requests.Load())
	}
}
