// Package servetest runs servers for tests of package serve and of its protocols and clients, and provides a few small pipelines
// to publish.
package servetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
)

// A Server serves over HTTP until Stop is called or the test ends.
type Server struct {
	*serve.Server
	URL  string
	Stop func() // can be called more than once
}

// Start starts a server. By default, its journal is in memory, and it looks for runs every 10 ms. Requests pass through the given
// middleware.
func Start(t testing.TB, cfg serve.Config, through ...func(http.Handler) http.Handler) *Server {
	t.Helper()
	if cfg.Journal == nil {
		cfg.Journal = memdb.New(t)
	}
	if cfg.Scan == 0 {
		cfg.Scan = 10 * time.Millisecond
	}
	s, err := serve.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	var handler http.Handler = s
	for _, wrap := range through {
		handler = wrap(handler)
	}
	over := httptest.NewServer(handler)
	stop := sync.OnceFunc(func() { cancel(); <-ended; over.Close() })
	t.Cleanup(stop)
	return &Server{s, over.URL, stop}
}

// Doc is the input type of the pipelines.
type Doc struct {
	Text string `json:"text"`
}

// Node types.
var (
	Order    = dag.NewType[Doc]("order")
	Draft    = dag.NewType[string]("draft")
	Approval = dag.NewType[stone.Answer]("approval")
	Page     = dag.NewType[string]("page")
)

// Steps creates the steps of the pipelines, and lets a test control and observe them.
type Steps struct {
	Written atomic.Int32  // number of times that Write has run
	Started chan bool     // receives a value each time Slow starts; if the channel is full, the value is dropped
	Gate    chan struct{} // Slow waits until it is closed
	Stopped chan error    // receives the error of the context each time Slow is canceled; if the channel is full, the error is dropped
}

// NewSteps returns Steps whose Slow blocks until the test closes Gate.
func NewSteps() *Steps {
	return &Steps{Started: make(chan bool, 1), Gate: make(chan struct{}), Stopped: make(chan error, 1)}
}

// Write returns a step that writes a draft of an order. It fails with kind "refused" for the order "bad".
func (s *Steps) Write() stone.Ashlar {
	return stone.Func("write", Order, Draft, func(_ context.Context, o Doc) (string, error) {
		s.Written.Add(1)
		if o.Text == "bad" {
			return "", stone.Fail("refused", "not this text")
		}
		return "About " + o.Text, nil
	}, stone.Effects())
}

// Publish returns a pipeline that writes a draft, asks whether to publish it, and creates a page from the draft and the answer.
// More steps may follow.
func (s *Steps) Publish(more ...stone.Ashlar) stone.Ashlar {
	ask := stone.Ask("approve", Draft, Approval, func(text string) string { return "Publish " + text + "?" }, stone.Choices("yes", "no"))
	publish := stone.Func2("publish", Draft, Approval, Page, func(_ context.Context, text string, a stone.Answer) (string, error) {
		return a.Response + ": " + text, nil
	}, stone.Effects())
	return stone.Seq("page", append([]stone.Ashlar{s.Write(), ask, publish}, more...)...)
}

// Slow returns a step that writes a draft of an order once Gate is closed.
func (s *Steps) Slow() stone.Ashlar {
	return stone.Func("slow", Order, Draft, func(ctx context.Context, _ Doc) (string, error) {
		select {
		case s.Started <- true:
		default:
		}
		select {
		case <-s.Gate:
			return "slow", nil
		case <-ctx.Done():
			select {
			case s.Stopped <- ctx.Err():
			default:
			}
			return "", ctx.Err()
		}
	}, stone.Effects())
}
