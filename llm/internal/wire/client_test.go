package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone/llm"
)

// nothing is a decoder without use.
type nothing struct{}

func (nothing) Event(out []llm.Delta, _ string, _ []byte) ([]llm.Delta, bool, error) {
	return out, false, nil
}
func (nothing) Whole(out []llm.Delta, _ []byte) ([]llm.Delta, error) { return out, nil }
func (nothing) End(out []llm.Delta) ([]llm.Delta, error)             { return out, nil }
func (nothing) Reply() *llm.Reply                                    { return &llm.Reply{} }

// A server that does not take the connection: the dialer hangs until it is stopped.
func TestConnectTimeout(t *testing.T) {
	dials := 0
	hang := &net.Dialer{ControlContext: func(ctx context.Context, _, _ string, _ syscall.RawConn) error {
		dials++
		<-ctx.Done()
		return ctx.Err()
	}}
	c, err := New(Options{
		URL: "http://127.0.0.1:9", Header: http.Header{}, HTTP: &http.Client{Transport: sharedTransport(hang)},
		Timeouts: llm.Timeouts{Connect: 30 * time.Millisecond}, Retry: llm.Retry{Max: 1, Wait: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	c.Stream(t.Context(), Body{}, func(string) Decoder { return nothing{} }, func(_ llm.Delta, err error) bool {
		last = err
		return true
	})
	var late *llm.TimeoutError
	if !errors.As(last, &late) || late.Phase != "connect" || late.Limit != 30*time.Millisecond || dials != 2 {
		t.Errorf("error %v after %d dials, want a connect timeout after 2", last, dials)
	}
}
