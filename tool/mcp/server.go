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
)

const (
	// starts is how often a call tries to start the server again.
	starts = 3
	// sends is how often a call is sent again that did not reach the server.
	sends = 3
	// The pause before a start doubles with every failure since the last answer.
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// A Server is a server that is connected, or will be when it is called. Its
// methods may be called from several goroutines.
type Server struct {
	cfg     Config   // without what opener needs
	needs   []string // effects
	open    func(context.Context) (*session, error)
	secrets *redact.Set

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	turn   chan struct{} // held by the one who starts a session

	mu       sync.Mutex
	current  *session // nil if there is none
	users    int      // calls in flight
	idle     *time.Timer
	failures int // starts and sessions that failed since the last answer
	ending   sync.WaitGroup
}

// newServer takes a complete configuration.
func newServer(cfg Config) *Server {
	s := &Server{open: opener(cfg), secrets: cfg.secrets(), needs: cfg.Needs(), turn: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	// A Server must not show secrets when it is printed: fmt cannot redact what it
	// finds in unexported fields.
	cfg.URL, cfg.Header, cfg.Env, cfg.Command = "", nil, nil, nil
	s.cfg = cfg
	return s
}

// Connect starts or reaches a server, and keeps it until Close. It returns a
// *StartError if it cannot.
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

// Close ends the connection, and the process group of a command. Calls in flight
// return, calls afterwards fail with ErrClosed. It may be called more than once;
// the error is always nil.
func (s *Server) Close() error {
	s.cancel()
	s.mu.Lock()
	s.drop(s.current)
	s.mu.Unlock()
	s.turn <- struct{}{} // a start that goes on ends soon, and leaves no session
	<-s.turn
	s.ending.Wait()
	return nil
}

// drop lets go of a session if it is still the current one. The caller holds mu.
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

// fail drops a session that is of no use any more.
func (s *Server) fail(old *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old == s.current {
		s.failures++
		s.drop(old)
	}
}

// join returns the current session for one more user, or nil if there is none.
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

// release gives back what acquire returned.
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

// acquire returns a session that works as far as is known, and starts one if there
// is none. The caller releases it.
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
	// A session outlives the call that starts it, so it takes nothing else from it.
	starting, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	for {
		if !s.pause(starting) {
			return nil, s.interrupted(ctx)
		}
		fresh, err := s.open(starting)
		if err == nil {
			return s.adopt(fresh)
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

// adopt makes a session the current one, with the caller as its user.
func (s *Server) adopt(fresh *session) (*session, error) {
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

// pause waits as long as the failures so far suggest.
func (s *Server) pause(ctx context.Context) bool {
	s.mu.Lock()
	failures := s.failures
	s.mu.Unlock()
	if failures == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(min(firstPause<<min(failures-1, 10), maxPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// interrupted says who has ended a start.
func (s *Server) interrupted(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrClosed
}

// call has the server do something, once: again only if it was not done the first
// time or if that does no harm.
func (s *Server) call(ctx context.Context, name string, repeatable bool, input json.RawMessage) (*sdk.CallToolResult, error) {
	var before error // why an earlier attempt was lost
	for sent := 1; ; sent++ {
		session, err := s.acquire(ctx, starts)
		if err != nil {
			if before != nil {
				err = s.explain(lost, before)
			}
			return nil, err
		}
		res, known, err := session.call(ctx, s.cfg.Timeout, name, input)
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

// explain says to the model, in its terms, why a call has no result.
func (s *Server) explain(known knowledge, err error) error {
	hidden := hidden(s.secrets, err)
	switch known {
	case refused:
		return fmt.Errorf("the server %q refused the call: %w", s.cfg.Name, hidden)
	case denied, unreached:
		return fmt.Errorf("the call was not done, since the server %q did not take it: %w", s.cfg.Name, hidden)
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
