package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stonelayer/stone/sandbox"
)

// The default limits of a [Config].
const (
	defaultRunTimeout   = 60 * time.Second
	defaultStartTimeout = 300 * time.Second
	defaultMaxOutput    = 64 << 10
)

// The limits of a session.
const (
	maxRunning = 16 // the maximum number of commands that run in the background at the same time
	maxKept    = 64 // the maximum number of ended commands whose results are kept
)

// errClosed is the error for using a session after Close.
var errClosed = errors.New("the session of commands is closed")

// A Config determines what the commands of a session may access. With the zero value, they may access only the current directory.
type Config struct {
	// Dir is the working directory of commands. They may change everything in it except .git and .stone; see [sandbox.Policy].
	Dir string
	// Writable lists further paths that commands may change; they must exist. ReadOnly lists paths that commands may only read,
	// even within writable directories; missing paths are ignored.
	Writable, ReadOnly []string
	// Env lists the environment variables that commands receive in addition to PATH, HOME, TMPDIR, TZ and the locale variables.
	// An entry is NAME=value, or NAME to pass this program's value.
	Env []string
	// Network lets commands connect to servers. Loopback also lets them connect to servers on this machine's loopback interface.
	// See [sandbox.Policy].
	Network, Loopback bool
	// Unconfined runs commands without a sandbox: they may do everything that this program may do.
	Unconfined bool
	// Limits restricts the resources of each command.
	Limits sandbox.Limits

	// RunTimeout limits the duration of commands run by run_command, and StartTimeout of commands run by start_command. A model
	// can request a shorter time limit for a command.
	RunTimeout, StartTimeout time.Duration
	// MaxOutput limits the number of bytes that are kept of standard output and, separately, of standard error.
	MaxOutput int
}

// A Session runs commands and keeps track of background commands, whose ids are cmd-1, cmd-2 and so on. A Session is safe for
// concurrent use.
type Session struct {
	config Config
	find   func() (sandbox.Method, error)
	ctx    context.Context // the session's context; canceled when the session is closed
	cancel context.CancelFunc
	active sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	scratch  string // this field and the next two are set when the first command runs
	dir      string
	policy   sandbox.Policy
	started  int
	commands []*command // the background commands, in the order in which they were started
}

// New returns a session that runs commands according to c. It has no effects until the first command runs.
func New(c Config) *Session {
	s := &Session{config: c, find: sandbox.Find}
	if c.Unconfined {
		s.find = func() (sandbox.Method, error) { return sandbox.Unconfined, nil }
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close stops all commands, waits until they have ended and deletes their temporary files. Further calls have no effect.
func (s *Session) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.active.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	scratch := s.scratch
	if s.scratch = ""; scratch == "" {
		return nil
	}
	return os.RemoveAll(scratch)
}

// errSetup is an error because of which no command can run on this machine. A model cannot resolve it.
type errSetup struct{ error }

func (e errSetup) Unwrap() error { return e.error }

// prepare returns a command that is ready to run. The caller must call s.active.Done when the command has ended.
func (s *Session) prepare(script string, timeout time.Duration) (*command, error) {
	method, err := s.find()
	if err != nil {
		return nil, errSetup{fmt.Errorf("commands are refused: %w; install bubblewrap, or set Unconfined if they may do anything", err)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errSetup{errClosed}
	}
	if s.scratch == "" {
		if err := s.setup(); err != nil {
			return nil, errSetup{fmt.Errorf("commands cannot be run: %w", err)}
		}
	}
	c := &command{script: script, timeout: timeout, policy: s.policy, dir: s.dir, done: make(chan struct{})}
	c.policy.Method = method
	c.stdout.Max = cmp.Or(s.config.MaxOutput, defaultMaxOutput)
	c.stderr.Max = c.stdout.Max
	c.env = append([]string{"HOME=" + s.scratch, "TMPDIR=" + s.scratch}, s.config.Env...)
	s.active.Add(1)
	return c, nil
}

// setup resolves the paths in the session's Config. It is called when the first command is prepared.
func (s *Session) setup() error {
	dir, err := filepath.Abs(cmp.Or(s.config.Dir, "."))
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return fmt.Errorf("the directory %s of the configuration: %w", s.config.Dir, err)
	}
	policy := sandbox.Policy{Network: s.config.Network, Loopback: s.config.Loopback, Limits: s.config.Limits}
	if policy.Writable, err = absolute(s.config.Writable); err != nil {
		return err
	}
	if policy.ReadOnly, err = absolute(s.config.ReadOnly); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "stone-shell-")
	if err != nil {
		return err
	}
	policy.Writable = append(policy.Writable, dir, scratch)
	s.scratch, s.dir, s.policy = scratch, dir, policy
	return nil
}

func absolute(paths []string) (all []string, err error) {
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		all = append(all, path)
	}
	return all, nil
}

// run runs a command and returns when it has ended. It is called once for each command.
func (s *Session) run(ctx context.Context, c *command) {
	defer s.active.Done()
	defer close(c.done)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	cmd := sandbox.Command(ctx, c.policy, "/bin/sh", "-c", c.script)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, &c.stdout, &c.stderr
	c.err = cmd.Run()
}

// background assigns an id to a command and starts it. The command ends with the session, not with ctx.
func (s *Session) background(ctx context.Context, script string, timeout time.Duration) (*command, error) {
	c, err := s.prepare(script, timeout)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	running, finished := 0, 0
	for _, other := range s.commands {
		if other.ended() {
			finished++
		} else {
			running++
		}
	}
	if running >= maxRunning {
		s.active.Done()
		return nil, fmt.Errorf("%d commands are running already: wait for one with wait_commands", running)
	}
	s.commands = forget(s.commands, finished-maxKept)
	s.started++
	c.id = fmt.Sprintf("cmd-%d", s.started)
	s.commands = append(s.commands, c)
	go s.run(context.WithoutCancel(ctx), c)
	return c, nil
}

// forget returns commands without the first n ended commands.
func forget(commands []*command, n int) (rest []*command) {
	for _, c := range commands {
		if n > 0 && c.ended() {
			n--
			continue
		}
		rest = append(rest, c)
	}
	return rest
}

// lookup returns the background command with the given id, or an error if there is none.
func (s *Session) lookup(id string) (*command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.commands {
		if c.id == id {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no command %q here: it was never started, ended long ago, or belonged to an earlier start of the program; start it again if it is needed", id)
}
