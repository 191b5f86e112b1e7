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

// lifeSign is how long to wait for the answer to a ping after a call has exceeded its timeout.
const lifeSign = 5 * time.Second

// closing is how long it takes at most to notice that a connection is broken.
const closing = time.Second

var (
	errTimeout = errors.New("timeout")
	errEnded   = errors.New("the connection was ended")
)

// A session is one connection to a server, from the start to the end of the connection.
type session struct {
	client *sdk.ClientSession
	// ctx cancels the calls in flight when the session ends, because the protocol library would wait for them.
	ctx    context.Context
	cancel context.CancelCauseFunc
	gone   chan struct{} // closed when the connection has ended
	doubt  atomic.Bool   // whether a call took too long, so that the server may no longer answer
	cmd    *process      // the server's process; nil if the server is not a command
	http   bool          // whether the fates of calls are recorded
	done   func()        // releases the transport
	// started is the server's reply to the first messages.
	started *fate

	progress *reporter // the reporter of the client

	listing chan struct{} // a lock for listed
	listed  []*sdk.Tool
	stale   *atomic.Bool // whether listed is unset or outdated
}

// status returns the HTTP status of the last answer to the first messages, or 0.
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

// goesDown waits at most the given time for the connection to end, and reports whether it has ended.
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

// within returns the context for a request to the server. The context ends after the timeout, with the cause errTimeout, or when
// the session ends, with the cause errEnded.
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

// answers reports whether the server answers a ping, after a call has timed out.
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

// knowledge says what is known about a call that has no result.
type knowledge int

const (
	refused   knowledge = iota // the server answered with an error
	unreached                  // the call was not carried out, and the session no longer works
	denied                     // the call was not carried out, and a repeated call would not be either
	late                       // there was no answer in time
	unread                     // the call was carried out, but the answer is unreadable
	lost                       // the call may have been carried out, and there will be no answer
	ended                      // this side has ended the call
)

// call calls a tool. If it returns an error, it also returns what is known about the call.
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
		// The library returns this error not only for an ended connection, but also for two error codes that servers may use
		// freely.
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

// unreadable reports whether err means that the protocol library could not read the result in an answer.
func unreadable(err error) bool {
	_, encoding := errors.AsType[base64.CorruptInputError](err)
	_, shape := errors.AsType[*json.UnmarshalTypeError](err)
	return encoding || shape || strings.Contains(err.Error(), "unrecognized content type")
}

// codeRejected is the code with which the protocol library reports a call that its transport could not send. The error looks like
// an answer from the server.
const codeRejected = -32005

func answered(err error) bool {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && wire.Code != codeRejected
}

// permanent reports whether another start would fail with the same error.
func permanent(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, ErrLogin)
}

// version returns the version that this program reports to the server.
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
