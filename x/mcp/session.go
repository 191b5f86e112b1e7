package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lifeSign limits the wait for a ping after a call that exceeded its timeout.
const lifeSign = 5 * time.Second

// closing limits the time until a broken connection is noticed.
const closing = time.Second

var (
	errTimeout = errors.New("timeout")
	errEnded   = errors.New("the connection was ended")
)

// A session is one connection to a server, from its start to its end.
type session struct {
	client *sdk.ClientSession
	// ctx ends the calls in flight, which the protocol library would wait for.
	ctx    context.Context
	cancel context.CancelCauseFunc
	gone   chan struct{} // closed when the connection has ended
	doubt  atomic.Bool   // a call took too long: the server may no longer answer
	cmd    *process      // nil without a command
	http   bool          // fates are noted
	done   func()        // releases the transport
	// started is the outcome of the first messages.
	started *fate

	progress *reporter // of the client

	listing chan struct{} // a lock for listed
	listed  []*sdk.Tool
	stale   *atomic.Bool // listed is unset or outdated
}

// status is the HTTP status of the last answer to the first messages, or 0.
func (s *session) status() int32 {
	if s == nil {
		return 0
	}
	return s.started.status.Load()
}

func (s *session) alive() bool {
	select {
	case <-s.gone:
		return false
	default:
		return true
	}
}

// goesDown reports whether the connection ends within the time.
func (s *session) goesDown(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-s.gone:
		return true
	case <-timer.C:
		return false
	}
}

// within returns the context of a request to the server. It ends after the timeout, with
// the cause errTimeout, and with the session, with the cause errEnded.
func (s *session) within(ctx context.Context, timeout time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	ctx, abort := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { abort(errEnded) })
	return ctx, func() {
		stop()
		abort(nil)
		cancel()
	}
}

// answers pings a server that let a call time out.
func (s *session) answers(ctx context.Context) bool {
	if !s.doubt.Load() {
		return true
	}
	ctx, cancel := s.within(ctx, lifeSign)
	defer cancel()
	err := s.client.Ping(ctx, nil)
	if err != nil && !answered(err) {
		return false
	}
	s.doubt.Store(false)
	return true
}

// end ends the session, and returns when its goroutines and processes have ended.
func (s *session) end() {
	s.cancel(errEnded)
	if s.cmd != nil {
		p := s.cmd
		p.stdin.Close()
		if !p.ended(stopGrace) {
			p.end()
			<-p.exited
		}
		p.end()
		p.stdout.Close()
	}
	if s.client != nil {
		s.client.Close() // the error does not matter
		<-s.gone
	}
	s.done()
}

// knowledge is the state of a call without a result.
type knowledge int

const (
	refused   knowledge = iota // the server answered, with an error
	unreached                  // not carried out; this session no longer works
	denied                     // not carried out, nor would a repetition be
	late                       // no answer in time
	unread                     // carried out, but the answer is unreadable
	lost                       // no answer will come
	ended                      // ended by this side
)

// call calls a tool. With an error it returns the state of the call.
func (s *session) call(ctx context.Context, timeout time.Duration, name string, input json.RawMessage) (*sdk.CallToolResult, knowledge, error) {
	ctx, cancel := s.within(ctx, timeout)
	defer cancel()
	ctx, f := withFate(ctx)
	params := &sdk.CallToolParams{Name: name, Arguments: input}
	defer s.progress.follow(ctx, params)()
	res, err := s.client.CallTool(ctx, params)
	if err == nil {
		return res, 0, nil
	}
	switch cause := context.Cause(ctx); {
	case cause == errTimeout:
		s.doubt.Store(true)
		return nil, late, err
	case cause == errEnded:
		return nil, lost, cause
	case cause != nil:
		return nil, ended, cause
	}
	return nil, s.judge(f, err), err
}

func (s *session) judge(f *fate, err error) knowledge {
	status := f.status.Load()
	switch {
	case errors.Is(err, errUnsent), f.forgot.Load(), s.http && !f.sent.Load():
		return unreached
	case errors.Is(err, sdk.ErrConnectionClosed):
		// The library returns this error for an ended connection, and also for two error codes that servers may use freely.
		if s.goesDown(closing) {
			return unreached
		}
		return refused
	case answered(err):
		return refused
	case status >= 400 && status < 500:
		return denied
	case unreadable(err):
		return unread
	}
	return lost
}

// unreadable reports whether the protocol library could not read the result of an answer.
func unreadable(err error) bool {
	_, encoding := errors.AsType[base64.CorruptInputError](err)
	_, shape := errors.AsType[*json.UnmarshalTypeError](err)
	return encoding || shape || strings.Contains(err.Error(), "unrecognized content type")
}

// codeRejected is the code with which the protocol library reports a call that its transport could not send. The error looks like
// the server's answer.
const codeRejected = -32005

func answered(err error) bool {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && wire.Code != codeRejected
}

// permanent reports whether another start would fail too.
func permanent(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, ErrLogin)
}

// version is this program's version for the server.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/stonelayer/stone" {
				return m.Version
			}
		}
	}
	return "(devel)"
}
