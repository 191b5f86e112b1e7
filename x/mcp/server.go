package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/retryafter"
)

const (
	// starts is the maximum number of attempts to start the server for one call.
	starts = 3
	// sends is the maximum number of attempts to send a call that does not reach the server.
	sends = 3
	// firstPause is the pause after the first failure. The pause doubles with each further failure until the server answers
	// again.
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// A Server is a connection to a server. A call reopens the connection if necessary. Its methods may be called from several
// goroutines.
type Server struct {
	cfg     Config   // the configuration without the parts that only opener needs
	needs   []string // the effects of the tools
	open    func(context.Context) (*session, error)
	secrets *redact.Set

	ctx    context.Context // is cancelled by Close
	cancel context.CancelFunc
	turn   chan struct{} // held by the goroutine that starts a session

	accepting sync.Mutex
	known     map[string]Definition // the accepted definitions, by tool name

	mu       sync.Mutex
	current  *session // the current session, or nil
	users    int      // the number of calls in flight
	idle     *time.Timer
	failures int // the number of starts and sessions that have failed since the last answer
	ending   sync.WaitGroup
}

// newServer returns a server for a complete configuration.
func newServer(cfg Config) *Server {
	secrets := cfg.secrets()
	s := &Server{open: opener(cfg, secrets), secrets: secrets, needs: cfg.Needs(), turn: make(chan struct{}, 1), known: map[string]Definition{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	// A Server must not show secrets when it is printed, and fmt cannot redact unexported fields.
	cfg.URL, cfg.Header, cfg.Env, cfg.Command, cfg.OAuth = "", nil, nil, nil, nil
	s.cfg = cfg
	return s
}

// Connect starts a server or connects to it, and returns the connection, which must be closed with Close. If the server cannot be
// started or reached, the error is a *StartError.
func Connect(ctx context.Context, cfg Config) (*Server, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := newServer(cfg)
	if _, err := s.acquire(ctx, 1); err != nil {
		s.cancel()
		return nil, err
	}
	s.release()
	return s, nil
}

// Close ends the connection and, for a command, all its processes. Calls in flight return, and later calls fail with ErrClosed.
// Close may be called more than once; the error is always nil.
func (s *Server) Close() error {
	s.cancel()
	s.mu.Lock()
	s.drop(s.current)
	s.mu.Unlock()
	s.turn <- struct{}{} // a start in progress ends soon and leaves no session
	<-s.turn
	s.ending.Wait()
	return nil
}

// drop removes a session if it is still the current session. The caller must hold mu.
func (s *Server) drop(old *session) {
	if old == nil || s.current != old {
		return
	}
	s.current = nil
	if s.idle != nil {
		s.idle.Stop()
	}
	s.ending.Go(old.end)
}

// fail drops a session that no longer works and counts the failure.
func (s *Server) fail(old *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old == s.current {
		s.failures++
		s.drop(old)
	}
}

// join returns the current session and counts one more caller of it, or returns nil if there is no session.
func (s *Server) join() (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if s.current != nil && !s.current.alive() {
		s.failures++
		s.drop(s.current)
	}
	if s.current == nil {
		return nil, nil
	}
	s.users++
	if s.idle != nil {
		s.idle.Stop()
	}
	return s.current, nil
}

// release releases a session that acquire has returned.
func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if s.users > 0 || s.cfg.Idle == 0 || s.current == nil {
		return
	}
	unused := s.current
	s.idle = time.AfterFunc(s.cfg.Idle, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users == 0 {
			s.drop(unused)
		}
	})
}

// acquire returns the current session. If there is none or it no longer works, acquire starts a new session. The caller must call
// release.
func (s *Server) acquire(ctx context.Context, tries int) (*session, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	current, err := s.join()
	if err != nil {
		return nil, err
	}
	if current != nil {
		if current.answers(ctx) {
			return current, nil
		}
		s.release()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.fail(current)
	}
	return s.start(ctx, tries)
}

func (s *Server) start(ctx context.Context, tries int) (*session, error) {
	// A session outlives the call that starts it, so it does not use the call's context.
	starting, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	for {
		if !s.pause(starting) {
			return nil, s.interrupted(ctx)
		}
		fresh, err := s.open(starting)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.current = fresh
			if s.ctx.Err() != nil {
				s.drop(fresh)
				return nil, ErrClosed
			}
			s.users++
			return fresh, nil
		}
		if starting.Err() != nil {
			return nil, s.interrupted(ctx)
		}
		s.mu.Lock()
		s.failures++
		s.mu.Unlock()
		if tries--; tries <= 0 || permanent(err) {
			return nil, err
		}
	}
}

// pause waits for a time that depends on the number of failures so far.
func (s *Server) pause(ctx context.Context) bool {
	s.mu.Lock()
	failures := s.failures
	s.mu.Unlock()
	if failures == 0 {
		return ctx.Err() == nil
	}
	return retryafter.Sleep(ctx, min(firstPause<<min(failures-1, 10), maxPause)) == nil
}

// interrupted returns the reason why a start was interrupted.
func (s *Server) interrupted(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrClosed
}

// call calls a tool of the server and returns the result. It repeats a lost call only if the call was not carried out or the tool
// is harmless.
func (s *Server) call(ctx context.Context, name string, repeatable bool, input json.RawMessage) (*sdk.CallToolResult, error) {
	var before error // the reason why the last attempt was lost
	for sent := 1; ; sent++ {
		session, err := s.acquire(ctx, starts)
		if err != nil {
			if before != nil {
				err = s.explain(lost, before)
			}
			return nil, err
		}
		refusal, err := s.verify(ctx, session, name)
		if refusal != nil {
			s.release()
			return nil, refusal
		}
		var res *sdk.CallToolResult
		known := unreached
		if err == nil {
			res, known, err = session.call(ctx, s.cfg.Timeout, name, input)
		} else if ctx.Err() != nil {
			known = ended
		} else if answered(err) {
			known = denied
		}
		s.release()
		if err == nil || known == refused || known == denied {
			s.mu.Lock()
			s.failures = 0
			s.mu.Unlock()
		}
		switch {
		case err == nil:
			return res, nil
		case known == ended:
			return nil, err
		case known == unreached && sent < sends:
			s.fail(session)
			continue
		case known == lost && repeatable && s.ctx.Err() == nil:
			repeatable, before = false, err
			continue
		}
		return nil, s.explain(known, err)
	}
}

// explain returns the error that tells the model why a call has no result.
func (s *Server) explain(known knowledge, err error) error {
	hidden := hidden(s.secrets, err)
	switch known {
	case refused:
		return fmt.Errorf("the server %q refused the call: %w", s.cfg.Name, hidden)
	case denied, unreached:
		return fmt.Errorf("the call was not done, since the server %q did not take it: %w", s.cfg.Name, hidden)
	case unread:
		return fmt.Errorf("the server %q has answered the call, but its result cannot be read: %w", s.cfg.Name, hidden)
	case late:
		return fmt.Errorf("the server %q did not answer within %v and the call was cancelled; %w", s.cfg.Name, s.cfg.Timeout, ErrUncertain)
	}
	if s.ctx.Err() != nil {
		return fmt.Errorf("%w during the call; %w", ErrClosed, ErrUncertain)
	}
	if errors.Is(err, errEnded) {
		return fmt.Errorf("the server %q had to be started again during the call; %w", s.cfg.Name, ErrUncertain)
	}
	return fmt.Errorf("the server %q went away during the call (%w); %w", s.cfg.Name, hidden, ErrUncertain)
}
