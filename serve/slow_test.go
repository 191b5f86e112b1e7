package serve_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/mcp/server"
)

// pipes is a listener whose connections are in memory, so that their deadlines follow the time of
// a test.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial() net.Conn {
	here, there := net.Pipe()
	p <- there
	return here
}

// A body that never comes holds its connection for half a minute at most, whoever it is sent to, and
// for a second where the sender is unknown. A stream is not cut.
func TestBodyThatNeverComes(t *testing.T) {
	for _, tt := range []struct {
		name, head string
		within     time.Duration
	}{
		{"login", "POST /login", bodyTime},
		{"start", "POST /v1/runs", bodyTime},
		{"answers on a page", "POST /runs/a/answers", bodyTime},
		{"gateway", "POST /v1/responses", bodyTime},
		{"act", "POST /v1/act", bodyTime},
		{"mcp", "POST /mcp", bodyTime},
		{"get", "GET /v1/runs", bodyTime},
		{"nowhere", "POST /nowhere", time.Second},
		{"unknown", "PUT /v1/runs/a", time.Second},
		{"foreign", "POST /v1/runs", time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := serve.New(serve.Config{
					Journal: memdb.New(t), Pipelines: []serve.Pipeline{{Name: "draft", Ashlar: servetest.NewSteps().Write()}},
					Access: tenants{}, Mounts: map[string]serve.Mount{"/mcp": server.Mount(server.Config{})},
				})
				if err != nil {
					t.Fatal(err)
				}
				over := pipes(make(chan net.Conn))
				server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
				go server.Serve(over)
				host, tenant := "localhost", "acme"
				switch tt.name {
				case "unknown":
					tenant = ""
				case "foreign":
					host = "evil.example"
				}
				conn, start := over.dial(), time.Now()
				if _, err := io.WriteString(conn, tt.head+" HTTP/1.1\r\nHost: "+host+"\r\nX-Tenant: "+tenant+"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, conn) // until the server closes it
				if took := time.Since(start); took > tt.within+time.Second {
					t.Errorf("the connection was held for %v, want at most %v", took, tt.within)
				}
				// A stream that has sent all of its request outlives the time of a body.
				stream := over.dial()
				if _, err := io.WriteString(stream, "GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nX-Tenant: acme\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				lines := make(chan string)
				go func() {
					for r := bufio.NewScanner(stream); r.Scan(); {
						lines <- r.Text()
					}
					close(lines)
				}()
				for deadline := time.After(2 * bodyTime); ; {
					select {
					case _, ok := <-lines:
						if ok {
							continue
						}
						t.Error("the stream was cut")
					case <-deadline:
					}
					break
				}
				stream.Close()
				s.Close()
				server.Close()
				for range lines {
				}
			})
		})
	}
}

const bodyTime = 30 * time.Second
