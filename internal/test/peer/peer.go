package peer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/need"
)

// Module returns the folder of an npm module. If the module is missing, it skips the test.
func Module(t testing.TB, name string) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(root, "testdata", "peers", "package.json")) { // the test may be in a nested module
		up := filepath.Dir(root)
		if up == root {
			t.Fatal("no testdata/peers above the folder of the test")
		}
		root = up
	}
	dir := filepath.Join(root, "testdata", "peers", "node_modules", filepath.FromSlash(name))
	if !exists(dir) {
		need.Absent(t, "no peer "+name+": run make peers")
	}
	need.Program(t, "node")
	return dir
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Self starts the test's binary again, with an environment variable set, and returns the first line that it prints. The standard
// input of the process stays open. The process ends with the test.
func Self(t testing.TB, variable string) (line string, cmd *exec.Cmd) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), variable), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the process prints nothing")
	}
	return lines.Text(), cmd
}

// Start runs node with the arguments, waits until the port accepts connections, and returns the server's address. The server ends
// with the test.
func Start(t testing.TB, port int, args ...string) string {
	t.Helper()
	cmd := exec.Command("node", args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-exited
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return "http://" + address
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("the peer ended: %v\n%s", err, output.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the peer does not answer\n%s", output.String())
		}
	}
}

// FreePort returns a port that nothing was listening on a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Aimock starts the model server @copilotkit/aimock, which supports both protocols, with a file of fixtures in the server's
// documented format. It returns the server's URL.
func Aimock(t testing.TB, fixtures string) string {
	t.Helper()
	dir := Module(t, "@copilotkit/aimock")
	Held(t, "@copilotkit/aimock", "its imitations of providers, whole and broken")
	file := filepath.Join(t.TempDir(), "fixtures.json")
	if err := os.WriteFile(file, []byte(fixtures), 0o600); err != nil {
		t.Fatal(err)
	}
	port := FreePort(t)
	return Start(t, port, filepath.Join(dir, "dist", "cli.js"), "-p", fmt.Sprint(port), "-h", "127.0.0.1", "-f", file, "--strict")
}

// Chaos configures how aimock handles requests with the given X-Test-Id.
func Chaos(t testing.TB, url, id, settings string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url+"/__aimock/chaos", strings.NewReader(settings))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Test-Id", id)
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("chaos: status %d: %s", resp.StatusCode, body)
	}
}

// Again starts the test's program once more, with additional environment variables. The program's standard input is closed when
// the test ends, if not earlier. Kill kills the program and waits until it has ended.
func Again(t testing.TB, env ...string) (kill func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), env...), os.Stderr
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = c.Process.Kill() // it may already have ended
		_ = c.Wait()
		in.Close()
	}
}
