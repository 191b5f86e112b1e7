package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/sandbox"
)

// The protocol versions in which the first messages of a session changed.
const (
	oldest     = "2024-11-05" // over HTTP, two endpoints, one of which is a stream of events
	initialize = "2025-11-25" // the newest version that starts with initialize
	discover   = "2026-07-28" // starts with server/discover, or else with initialize
)

// versions are the values of Config.Protocol.
var versions = []string{oldest, "2025-03-26", "2025-06-18", initialize, discover}

// probing is how long to wait for an answer to server/discover, which older servers may ignore.
const probing = 5 * time.Second

// A starter starts the sessions of a server. No other type contains the secrets of the configuration.
type starter struct {
	Config
	client  *sdk.Client
	secrets *redact.Set
	known   string // the version of the last started session, or ""
}

// opener returns a function that starts a session with the configured server. The function must not be called concurrently.
func opener(c Config, secrets *redact.Set) func(context.Context) (*session, error) {
	progress := &reporter{}
	stale := &atomic.Bool{}
	client := sdk.NewClient(&sdk.Implementation{Name: "stone", Version: version()}, &sdk.ClientOptions{
		Logger:         c.Logger,
		Capabilities:   &sdk.ClientCapabilities{}, // no roots, no sampling, no elicitation
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},

		ProgressNotificationHandler: progress.hear,
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { stale.Store(true) },
	})
	client.AddSendingMiddleware(listenBeside)
	b := &starter{Config: c, client: client, secrets: secrets}
	return func(ctx context.Context) (*session, error) {
		s, err := b.start(ctx)
		if err == nil {
			s.progress, s.stale = progress, stale
			stale.Store(true)
			return s, nil
		}
		start := &StartError{Server: c.Name}
		if s != nil && s.cmd != nil {
			start.Stderr = secrets.CleanCut(s.cmd.stderr.String())
			if p := c.Sandbox; p.Method != sandbox.Unconfined && !p.Network && (errors.Is(err, context.DeadlineExceeded) || offline.MatchString(start.Stderr)) {
				err = fmt.Errorf("%w (it runs confined, without network: Config.Sandbox.Network or :network true grants it)", err)
			}
		}
		start.Err = hidden(secrets, err)
		return nil, start
	}
}

// listenBeside is a middleware that does not wait for the notification stream, because a proxy may hold back its headers until a
// change occurs. It also tells the transport which message is being sent.
func listenBeside(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		ctx = context.WithValue(ctx, methodKey{}, method)
		if method != methodListen {
			return next(ctx, method, req)
		}
		go next(ctx, method, req)
		return &sdk.SubscriptionsListenResult{}, nil
	}
}

// start starts a session with the protocol version that is known to work. If none is known, it tries all versions, because
// servers for versions before 2026-07-28 may answer server/discover with anything, or end. The version is not stored on disk,
// because an updated server would then be started with the wrong version until somebody deleted the file. A session that is
// returned with an error has ended.
func (b *starter) start(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.StartTimeout, errTimeout)
	defer cancel()
	if way := cmp.Or(b.Protocol, b.known); way != "" {
		b.known = ""
		return b.try(ctx, way)
	}
	probe := ctx
	if b.login == nil { // a login takes as long as the user needs
		var cancel context.CancelFunc
		probe, cancel = context.WithTimeoutCause(ctx, min(probing, b.StartTimeout/2), errTimeout)
		defer cancel()
	}
	s, err := b.try(probe, discover)
	if err == nil || s == nil || ctx.Err() != nil || denies(s.status()) || errors.Is(err, ErrLogin) {
		return s, err
	}
	second, err := b.try(ctx, initialize)
	if err == nil || ctx.Err() != nil {
		return second, err
	}
	switch status := second.status(); {
	case b.URL != "" && status >= 400 && status < 500 && !denies(status):
		if third, err := b.try(ctx, oldest); err == nil {
			return third, nil
		}
	case probe.Err() != nil && answered(err): // a server with the new protocol that needs more time
		return b.try(ctx, discover)
	}
	return second, err
}

// denies reports whether an HTTP status refuses the account rather than the message.
func denies(status int32) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// try starts a session with the first messages of the given version.
func (b *starter) try(ctx context.Context, version string) (*session, error) {
	s := &session{gone: make(chan struct{}), done: func() {}, listing: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	transport, err := s.transport(ctx, b.Config, version, b.secrets)
	if err != nil {
		return nil, err
	}
	ctx, s.started = withFate(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.cmd != nil {
		go func() { // a command that has ended will not answer
			select {
			case <-s.cmd.exited:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	line := &line{Transport: transport}
	release := context.AfterFunc(ctx, line.cut) // needed because a write may ignore its context
	s.client, err = b.client.Connect(ctx, line, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		go func() {
			s.client.Wait() // calls report why the session ended
			close(s.gone)
		}()
		if release() {
			b.known = version
			if version == discover && s.client.InitializeResult().ProtocolVersion < discover {
				b.known = initialize
			}
			return s, nil
		}
		err = context.Cause(ctx)
	}
	line.cut()
	switch {
	case context.Cause(ctx) == errTimeout:
		err = fmt.Errorf("no answer within %v: %w", b.StartTimeout, context.DeadlineExceeded)
	case s.cmd != nil && s.cmd.ended(2*drainGrace): // the output ends shortly before the process does
		err = fmt.Errorf("the command exited: %w", exit(s.cmd.err))
	}
	s.end()
	return s, err
}

func exit(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func (s *session) transport(ctx context.Context, c Config, version string, secrets *redact.Set) (_ sdk.Transport, err error) {
	switch {
	case c.Transport != nil:
		return c.Transport(ctx)
	case c.URL != "":
		s.http = true
		return s.httpTransport(c, version, secrets)
	}
	if s.cmd, err = startProcess(ctx, c); err != nil {
		return nil, err
	}
	return &sdk.IOTransport{Reader: s.cmd.messages(), Writer: &timedWriter{s.cmd.stdin, c.Timeout}, MaxLineLength: maxFrame}, nil
}

// A line is a transport whose connection can be closed from outside.
type line struct {
	sdk.Transport
	conn atomic.Pointer[sdk.Connection]
	dead atomic.Bool
}

// Connect implements [sdk.Transport].
func (l *line) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := l.Transport.Connect(ctx)
	if err == nil {
		l.conn.Store(&conn)
		if l.dead.Load() {
			conn.Close()
		}
	}
	return conn, err
}

func (l *line) cut() {
	l.dead.Store(true)
	if conn := l.conn.Load(); conn != nil {
		(*conn).Close()
	}
}

// trouble matches the line in which a program explains why it ends, which is seldom the last line.
var trouble = regexp.MustCompile(`(?i)^\W*[\w.: '-]*(error|exception|panic|panicked|fatal)\b`)

// offline matches the messages of programs that cannot reach the network.
var offline = regexp.MustCompile(`(?i)ENOTFOUND|EAI_AGAIN|ENETUNREACH|name resolution|name or service not known|(could not|failed to) resolve|network is unreachable|dns error|no such host|fetch failed|failed to lookup address`)

// reason returns the line of a program's output that seems to explain why the program ended or, if there is none, the last line.
func reason(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimRight(lines[i], " \r")
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") || strings.Contains(line, "log of this run") || !trouble.MatchString(line) {
			continue
		}
		if strings.HasSuffix(line, ":") && i+1 < len(lines) { // Rust
			line += " " + strings.TrimSpace(lines[i+1])
		}
		return line
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
