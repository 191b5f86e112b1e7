package servertest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/server/temporaltest"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/x/temporal"
)

// testServer is a Temporal server in memory, and what its clients have sent.
type testServer struct {
	*temporaltest.TestServer
	mu   sync.Mutex
	sent []proto.Message
	keep bool
}

var (
	shared *testServer
	once   sync.Once
)

// server returns the server that all tests of the process share: it starts once, since each
// server costs about a second and 170 MB.
func server() *testServer {
	once.Do(func() { shared = &testServer{TestServer: temporaltest.NewServer()} })
	return shared
}

func TestMain(m *testing.M) {
	if os.Getenv(serving) != "" {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if err := os.RemoveAll(crewDir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if shared != nil {
		shared.Stop()
	}
	os.Exit(code)
}

var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

func (s *testServer) client(t *testing.T) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{
		HostPort: s.GetFrontendHostPort(), Namespace: s.GetDefaultNamespace(), Logger: quiet,
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(s.note)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// note keeps every request.
func (s *testServer) note(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if m, ok := req.(proto.Message); ok && s.keep {
		s.mu.Lock()
		s.sent = append(s.sent, proto.Clone(m))
		s.mu.Unlock()
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// record makes the cluster keep requests, and returns a function that returns their text.
func (s *testServer) record() func() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep, s.sent = true, nil
	return func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		var b strings.Builder
		for _, m := range s.sent {
			raw, _ := proto.Marshal(m)
			b.Write(raw)
			b.WriteString(protojson.Format(m))
			fmt.Fprintln(&b)
		}
		s.keep = false
		return b.String()
	}
}

// work starts a worker and stops it at the end of the test, or when the function is called.
func work(t *testing.T, w temporal.Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	w.Log = slog.New(slog.DiscardHandler)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func nodes(result stone.Result) string {
	var b strings.Builder
	for n := range result.DAG.Nodes() {
		fmt.Fprintf(&b, "%s %s %s\n", n.ID(), n.Type(), n.JSON())
	}
	return b.String()
}
