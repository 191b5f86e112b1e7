// Package servetest runs servers for the tests of package serve and of its protocols and
// clients, with a few small pipelines to publish.
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
	Stop func() // may be called twice
}

// Start starts a server. By default its journal is in memory, and it searches for runs every
// 10 ms. Requests pass through the given middleware.
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

// Doc is the input of the pipelines.
type Doc struct {
	Text string `json:"text"`
}

// Types of nodes.
var (
	Order    = dag.NewType[Doc]("order")
	Draft    = dag.NewType[string]("draft")
	Approval = dag.NewType[stone.Answer]("approval")
	Page     = dag.NewType[string]("page")
)

// Steps makes the steps of the pipelines, and lets a test control and observe them.
type Steps struct {
	Written atomic.Int32  // how often Write has run
	Started chan bool     // receives a value when Slow starts; dropped if full
	Gate    chan struct{} // Slow waits until it is closed
	Stopped chan error    // receives the error of the context when Slow is canceled; dropped if full
}

// NewSteps returns Steps whose Slow blocks until the test closes Gate.
func NewSteps() *Steps {
	return &Steps{Started: make(chan bool, 1), Gate: make(chan struct{}), Stopped: make(chan error, 1)}
}

// Write makes a draft of an order. It fails with kind "refused" for the order "bad".
func (s *Steps) Write() stone.Ashlar {
	return stone.Func("write", Order, Draft, func(_ context.Context, o Doc) (string, error) {
		s.Written.Add(1)
		if o.Text == "bad" {
			return "", stone.Fail("refused", "not this text")
		}
		return "About " + o.Text, nil
	}, stone.Effects())
}

// Publish writes a draft, asks whether to publish it, and makes a page of draft and answer.
// More steps may follow.
func (s *Steps) Publish(more ...stone.Ashlar) stone.Ashlar {
	ask := stone.Ask("approve", Draft, Approval, func(text string) string { return "Publish " + text + "?" }, stone.Choices("yes", "no"))
	publish := stone.Func2("publish", Draft, Approval, Page, func(_ context.Context, text string, a stone.Answer) (string, error) {
		return a.Response + ": " + text, nil
	}, stone.Effects())
	return stone.Seq("page", append([]stone.Ashlar{s.Write(), ask, publish}, more...)...)
}

// Slow makes a draft of an order once Gate is closed.
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
