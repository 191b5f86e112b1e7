package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/confine"
)

// Limits of a [Config] that does not set its own.
const (
	DefaultRunTimeout   = 60 * time.Second
	DefaultStartTimeout = 300 * time.Second
	DefaultMaxOutput    = 64 << 10
)

// Bounds of a session.
const (
	maxRunning = 16 // commands in the background at the same time
	maxKept    = 64 // commands whose end is remembered
)

// ErrClosed says that a session is used after Close.
var ErrClosed = errors.New("the session of commands is closed")

// A Config says what the commands of a session may use. The zero value confines
// them to the current directory.
type Config struct {
	// Dir is where commands work. They may change what is in it.
	Dir string
	// Writable are further paths that commands may change; they must exist. ReadOnly
	// are those that they may read; missing ones are left out.
	Writable, ReadOnly []string
	// Env are variables that commands get beside PATH, HOME, TMPDIR, TZ and those of
	// the language: as NAME=value, or as NAME to pass on what the program has.
	Env []string
	// Network lets commands use the network.
	Network bool
	// Unconfined lets commands do whatever the program may do.
	Unconfined bool

	// RunTimeout and StartTimeout are the most that a command of run_command and
	// start_command may take, and what they may take if the model names no time.
	RunTimeout, StartTimeout time.Duration
	// MaxOutput bounds the bytes that are kept of standard output, and of standard
	// error too.
	MaxOutput int
}

// A Session runs commands and knows those in the background by their ids, which are
// cmd-1, cmd-2 and so on. It is safe for concurrent use.
type Session struct {
	config Config
	find   func() (confine.Method, error)
	ctx    context.Context // of the session; done when it is closed
	cancel context.CancelFunc
	active sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	scratch  string // this and the next two are set for the first command
	dir      string
	policy   confine.Policy
	started  int
	commands []*command // in the background, in the order of their start
}

// New returns a session. It touches nothing before the first command.
func New(c Config) *Session {
	s := &Session{config: c, find: confine.Find}
	if c.Unconfined {
		s.find = func() (confine.Method, error) { return confine.Unconfined, nil }
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends all commands, waits for that and deletes their temporary files.
// Closing again does nothing.
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

// errSetup says that commands cannot be run here at all, which no model can mend.
type errSetup struct{ error }

func (e errSetup) Unwrap() error { return e.error }

// prepare makes a command ready to run. The caller calls s.active.Done when it has
// ended.
func (s *Session) prepare(script string, timeout time.Duration) (*command, error) {
	method, err := s.find()
	if err != nil {
		return nil, errSetup{fmt.Errorf("commands are refused: %w; install bubblewrap, or set Unconfined if they may do anything", err)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errSetup{ErrClosed}
	}
	if s.scratch == "" {
		if err := s.setup(); err != nil {
			return nil, errSetup{fmt.Errorf("commands cannot be run: %w", err)}
		}
	}
	c := &command{
		script: script, timeout: timeout, method: method, policy: s.policy, done: make(chan struct{}),
	}
	c.stdout.max = cmp.Or(s.config.MaxOutput, DefaultMaxOutput)
	c.stderr.max = c.stdout.max
	c.cmd = exec.Command("/bin/sh", "-c", script)
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = s.dir, &c.stdout, &c.stderr
	c.cmd.Env = environment(s.scratch, s.config.Env)
	s.active.Add(1)
	return c, nil
}

// setup finds out, once, where commands work and what they may use. It is done
// before the first of them, because a command could put a symbolic link in the
// place of a path that lies where it may write. For the same reason what lies there
// does not become a grant of its own, which a later command would follow.
func (s *Session) setup() error {
	dir, err := resolve(cmp.Or(s.config.Dir, "."))
	if err != nil {
		return err
	}
	policy := confine.Policy{Network: s.config.Network}
	places := []place{dir}
	for _, path := range s.config.Writable {
		p, err := resolve(path)
		if err != nil {
			return err
		}
		places = append(places, p)
	}
	// Shorter ones first, so that a directory comes before what lies in it.
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(len(a.real), len(b.real)) })
	var granted []string
	for _, p := range places {
		if !within(p.real, granted) {
			granted = append(granted, p.real)
			policy.Writable = append(policy.Writable, p.names()...)
		}
	}
	for _, path := range s.config.ReadOnly {
		// One that does not exist is left out now, as it could appear later.
		if p, err := resolve(path); err == nil && !within(p.real, granted) {
			policy.ReadOnly = append(policy.ReadOnly, p.names()...)
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	scratch, err := os.MkdirTemp("", "stone-shell-")
	if err != nil {
		return err
	}
	policy.Writable = append(policy.Writable, scratch)
	s.scratch, s.dir, s.policy = scratch, dir.real, policy
	return nil
}

// A place is a path as the author wrote it, but absolute, and without links.
type place struct{ path, real string }

func resolve(path string) (p place, err error) {
	if p.path, err = filepath.Abs(path); err == nil {
		p.real, err = filepath.EvalSymlinks(p.path)
	}
	if err != nil {
		return p, fmt.Errorf("the path %s of the configuration: %w", p.path, err)
	}
	return p, nil
}

// names returns the paths by which commands may call the place.
func (p place) names() []string { return slices.Compact([]string{p.real, p.path}) }

// within reports whether path is one of dirs or lies in one.
func within(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// run runs a command until it has ended, and is called once.
func (s *Session) run(ctx context.Context, c *command) {
	defer s.active.Done()
	defer close(c.done)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	c.err = confine.Run(ctx, c.method, c.policy, c.cmd)
}

// background gives a command an id and starts it.
func (s *Session) background(script string, timeout time.Duration) (*command, error) {
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
	go s.run(context.Background(), c)
	return c, nil
}

// forget returns the commands without the first n that have ended.
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

// lookup returns the command with an id.
func (s *Session) lookup(id string) (*command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.commands {
		if c.id == id {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no command %q here: it was never started, is long over, or belonged to an earlier start of the program; start it again if it is needed", id)
}

// environment returns the variables of a command. Of two with one name the later
// one counts.
func environment(scratch string, more []string) []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + scratch, "TMPDIR=" + scratch}
	for _, v := range append([]string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}, more...) {
		if strings.Contains(v, "=") {
			env = append(env, v)
		} else if value, ok := os.LookupEnv(v); ok {
			env = append(env, v+"="+value)
		}
	}
	return env
}
