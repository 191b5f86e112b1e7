// Package pgtest provides real PostgreSQL servers for tests.
//
// The first call of [Database] in a test program creates a cluster in a temporary directory and starts a server on a Unix socket.
// If the tests run as root, the server runs as a different user, because PostgreSQL refuses to run as root. A shell process waits
// until the test program ends, even by a panic or SIGKILL. It then stops the server, by the server's process ID, and removes the
// directory.
//
// To use a different server, set STONE_PG to the address of a database whose user may create databases and roles. Tests that stop
// their server start their own in any case. If STONE_PG is not set and PostgreSQL is not installed, tests are skipped, or fail if
// STONE_REQUIRED is set.
package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/need"
)

// Database creates an empty database on the server that all tests of a program share, and returns the database's address. The
// database is dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	s, err := shared()
	check(t, err)
	return s.Database(t)
}

var shared = sync.OnceValues(func() (*Server, error) {
	if address := os.Getenv("STONE_PG"); address != "" {
		return &Server{address: address}, nil
	}
	// These settings are safe because tests end processes and servers, but never the machine.
	return newServer("fsync=off", "full_page_writes=off")
})

var errNone = errors.New("no PostgreSQL: install it, or set STONE_PG to the address of a server")

// check skips the test if there is no server, and fails it for any other error.
func check(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, errNone):
		need.Absent(t, err.Error())
	case err != nil:
		t.Fatal(err)
	}
}

// Server is a running server.
type Server struct {
	address string // address of a database to connect to
	home    string // directory of the server; "" for a server specified by STONE_PG
	bin     string
	options []string
	janitor *os.File // closing it ends the server
}

// New starts a server for a single test, with settings such as "fsync=off". The test may stop and restart it.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := newServer(settings...)
	check(t, err)
	t.Cleanup(func() { s.janitor.Close() })
	return s
}

const owner = "stone" // owner of the cluster

func newServer(settings ...string) (*Server, error) {
	return launch(settings, func(s *Server) error {
		return s.run("initdb", "-D", s.data(), "-U", owner, "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	})
}

// launch starts a server in a new directory. The function fill creates the server's data.
func launch(settings []string, fill func(*Server) error) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin}
	if s.home, err = os.MkdirTemp("", "stone-pg-"); err != nil {
		return nil, err
	}
	if who := unprivileged(); who != nil {
		if err := os.Chown(s.home, int(who.Uid), int(who.Gid)); err != nil {
			return nil, err
		}
	}
	if err := s.watch(); err != nil {
		return nil, err
	}
	if err := fill(s); err != nil {
		return nil, err
	}
	s.options = []string{"-k", s.home, "-c", "listen_addresses=", "-c", "max_connections=500", "-c", "log_min_messages=panic"}
	for _, setting := range settings {
		s.options = append(s.options, "-c", setting)
	}
	s.address = "postgres://" + owner + "@/postgres?host=" + url.QueryEscape(s.home)
	return s, s.start()
}

func (s *Server) data() string { return filepath.Join(s.home, "data") }

// Socket returns the path of the server's Unix socket.
func (s *Server) Socket() string { return filepath.Join(s.home, ".s.PGSQL.5432") }

// programs returns the directory of PostgreSQL's programs. On Debian it is not in PATH.
func programs() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path) // PATH may contain only a link to this program
		return filepath.Dir(path), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errNone
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // if this fails, 0 counts as the oldest version
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) })), nil
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.bin, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = s.home
	apart(cmd, true)
	return cmd
}

func (s *Server) run(name string, args ...string) error {
	if out, err := s.command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// watch starts the shell that stops the server when this process has ended, which the shell detects by the end of its standard
// input. The shell is not in this process's group, so that Ctrl-C does not reach it.
func (s *Server) watch() error {
	const script = `cat >/dev/null
for file in "$1"/pooler-*/pid; do test -e "$file" && kill -KILL "$(cat "$file")"; done
pid=$(head -n 1 "$1/data/postmaster.pid") && kill -QUIT "$pid" && while kill -0 "$pid"; do sleep 0.05; done
rm -rf "$1"`
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	cmd := exec.Command("sh", "-c", script, "sh", s.home)
	cmd.Stdin = in
	apart(cmd, false)
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait() // fails if the server had already ended
	s.janitor = out
	return nil
}

// start starts the server, and returns when it accepts connections.
func (s *Server) start() error {
	log, err := os.OpenFile(filepath.Join(s.home, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.command("postgres", append([]string{"-D", s.data()}, s.options...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := pgconn.Connect(context.Background(), s.address)
		if err == nil {
			return conn.Close(context.Background())
		}
		select {
		case err := <-ended:
			text, _ := os.ReadFile(log.Name()) // if this fails, the error alone is enough
			return fmt.Errorf("postgres ended: %w: %s", err, text)
		default:
		}
		if time.Now().After(limit) {
			return fmt.Errorf("postgres does not answer: %w", err)
		}
	}
}

// Crash stops the server as a power failure would stop its processes, without finishing anything.
func (s *Server) Crash() error {
	return s.run("pg_ctl", "-D", s.data(), "-m", "immediate", "-w", "stop")
}

// Start starts a stopped server, and returns when it accepts connections.
func (s *Server) Start() error { return s.start() }

var made atomic.Int64

// Database creates an empty database and returns its address. The database is dropped when
// the test ends.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("stone_%d_%d", os.Getpid(), made.Add(1))
	if err := s.exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil && s.janitor == nil {
			t.Errorf("drop database: %v", err) // any other server is removed together with its databases
		}
	})
	address, err := url.Parse(s.address)
	if err != nil || !strings.HasPrefix(s.address, "postgres") {
		t.Fatalf("STONE_PG: want an address like postgres://user@host/database")
	}
	address.Path = "/" + name
	return address.String()
}

func (s *Server) exec(statement string) error {
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, s.address)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement).ReadAll()
	return errors.Join(err, conn.Close(ctx))
}

// Exec executes statements in the database with the given address.
func Exec(t testing.TB, address, statements string) {
	t.Helper()
	s := &Server{address: address}
	if err := s.exec(statements); err != nil {
		t.Fatal(err)
	}
}

// CPU returns the processor time of the server's processes that are still running, or 0 on systems without /proc.
func (s *Server) CPU() (used time.Duration) {
	for _, fields := range s.processes() {
		for _, field := range fields[11:13] { // user and system time in hundredths of a second
			ticks, _ := strconv.ParseInt(field, 10, 64) // cannot fail: the kernel writes numbers
			used += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return used
}

// processes returns, for each process of the server except the first, the fields of /proc/PID/stat from the state on, by process
// ID.
func (s *Server) processes() map[int][]string {
	first := strconv.Itoa(s.first())
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // cannot fail: the pattern is valid
	all := map[int][]string{}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		before, after, found := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after)
		if err != nil || !found || fields[1] != first {
			continue
		}
		number, _, _ := strings.Cut(before, " ")
		if pid, err := strconv.Atoi(number); err == nil {
			all[pid] = fields
		}
	}
	return all
}

// first returns the ID of the server's first process, or 0 if there is none.
func (s *Server) first() int {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line) // cannot fail: the server wrote the number
	return pid
}

// Signal sends a signal to all processes of the server. With SIGKILL, it returns when all of them have ended.
func (s *Server) Signal(sig syscall.Signal) error {
	first := s.first()
	if first == 0 {
		return errors.New("the server has no process")
	}
	var stopped []int
	if sig == syscall.SIGKILL { // so that the first process can neither start further processes nor end these
		if err := kill(first, stop); err != nil {
			return err
		}
	}
	for pid := range s.processes() {
		stopped = append(stopped, pid)
	}
	for _, pid := range append(stopped, first) {
		if err := kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	if sig != syscall.SIGKILL {
		return nil
	}
	for _, pid := range append(stopped, first) {
		for {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if _, after, _ := strings.Cut(string(stat), ") "); err != nil || strings.HasPrefix(after, "Z") {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// Stop stops the server in the way an administrator does who does not want to wait for clients.
func (s *Server) Stop() error {
	return s.run("pg_ctl", "-D", s.data(), "-m", "fast", "-w", "stop")
}

// Limited creates a database like [Database], whose address uses a separate role. It also returns a function that ends all
// connections to the database and refuses new ones, until undo is called.
func Limited(t testing.TB) (address string, refuse func() (undo func() error, err error)) {
	t.Helper()
	s, err := shared()
	check(t, err)
	role := fmt.Sprintf("stone_role_%d_%d", os.Getpid(), made.Add(1))
	t.Cleanup(func() {
		if err := s.exec("DROP ROLE IF EXISTS " + role); err != nil && s.janitor == nil { // a server of its own is removed with its roles
			t.Errorf("drop role: %v", err)
		}
	})
	u, err := url.Parse(s.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	if err := s.exec("CREATE ROLE " + role + " LOGIN; GRANT CREATE ON DATABASE " + name + " TO " + role); err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String(), func() (func() error, error) {
		err := s.exec("ALTER ROLE " + role + " CONNECTION LIMIT 0; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '" + role + "'")
		return func() error { return s.exec("ALTER ROLE " + role + " CONNECTION LIMIT -1") }, err
	}
}

// patiently executes a statement that requires a checkpoint, and retries it. A checkpoint fails while another test's small disk is
// full.
func (s *Server) patiently(statement string) error {
	for range 150 {
		err := s.exec(statement)
		if err == nil || !strings.Contains(err.Error(), "checkpoint request failed") {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return s.exec(statement)
}

// Small creates a database like [Database] on a small disk, and also returns the folder of the disk. It skips the test if such a
// disk cannot be created.
func Small(t testing.TB, size int) (address, folder string) {
	t.Helper()
	s, err := shared()
	check(t, err)
	if s.home == "" {
		need.Absent(t, "no small disk on a server that was named")
	}
	name := fmt.Sprintf("stone_small_%d_%d", os.Getpid(), made.Add(1))
	folder = filepath.Join(s.home, name)
	options := []string{"mode=0700"}
	if who := unprivileged(); who != nil {
		options = append(options, fmt.Sprint("uid=", who.Uid), fmt.Sprint("gid=", who.Gid))
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	remove := memdir.Disk(t, folder, size, options...)
	t.Cleanup(func() {
		if err := errors.Join(s.patiently("DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"), s.patiently("DROP TABLESPACE IF EXISTS "+name), remove()); err != nil {
			t.Error(err)
		}
	})
	for _, statement := range []string{"CREATE TABLESPACE " + name + " LOCATION '" + folder + "'", "CREATE DATABASE " + name + " TABLESPACE " + name} {
		if err := s.patiently(statement); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(s.address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String(), folder
}

// Pooler starts PgBouncer in transaction mode for the server. It returns a function that converts the address of a
// database to an address that connects through PgBouncer. If PgBouncer is missing, the test is skipped or fails, as if the server
// were missing.
func (s *Server) Pooler(t testing.TB) (through func(address string) string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil || s.home == "" {
		check(t, fmt.Errorf("%w, and PgBouncer", errNone))
	}
	dir := filepath.Join(s.home, fmt.Sprint("pooler-", made.Add(1)))
	config := fmt.Sprintf(`[databases]
* = host=%[1]s user=%[2]s
[pgbouncer]
pool_mode = transaction
auth_type = any
unix_socket_dir = %[3]s
listen_port = 5432
logfile = %[3]s/log
pidfile = %[3]s/pid
default_pool_size = 20
max_client_conn = 1000
`, s.home, owner, dir)
	if err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "ini"), []byte(config), 0o644)); err != nil {
		t.Fatal(err)
	}
	if who := unprivileged(); who != nil {
		if err := os.Chown(dir, int(who.Uid), int(who.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	// PgBouncer 1.18 may exit after a cancel request ("server in bad state: 11"). If it ran as a service, it would be restarted.
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var last error
	go func() {
		defer close(ended)
		for ctx.Err() == nil && last == nil {
			_ = os.Remove(filepath.Join(dir, "pid")) // a different process may now have this ID
			cmd := s.command(program, "-q", filepath.Join(dir, "ini"))
			if last = cmd.Start(); last != nil {
				return
			}
			kill := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // it may already have ended
			_ = cmd.Wait()                                                    // the log shows the reason
			kill()
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond): // if PgBouncer refuses its configuration, restarting it must not keep a core busy
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		_ = os.Remove(filepath.Join(dir, "pid"))
		if text, _ := os.ReadFile(filepath.Join(dir, "log")); last != nil || t.Failed() {
			t.Logf("PgBouncer: %v\n%s", last, text)
		}
	})
	through = func(address string) string {
		return strings.Replace(address, "host="+url.QueryEscape(s.home), "host="+url.QueryEscape(dir), 1)
	}
	probe := &Server{address: through(s.address)}
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := probe.exec("SELECT 1")
		if err == nil {
			return through
		}
		if time.Now().After(limit) {
			text, _ := os.ReadFile(filepath.Join(dir, "log")) // if this fails, the error alone is enough
			t.Fatalf("PgBouncer does not answer: %v: %s", err, text)
		}
	}
}
