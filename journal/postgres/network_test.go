package postgres

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/pgtest"
)

// A network is a proxy before a server. It loses the connection over which the next commit
// with records is sent, after it was armed. While gate is locked it carries nothing, and
// loses nothing.
type network struct {
	*testing.T
	server string // socket
	cut    atomic.Value
	cuts   atomic.Int64
	gate   sync.RWMutex
	trips  atomic.Int64 // round trips, but for notifications
}

// pass waits until the network carries data.
func (n *network) pass() {
	n.gate.RLock()
	defer n.gate.RUnlock()
}

// Ways to lose a connection at a commit.
const (
	lost      = "the commit is lost"
	answer    = "the answer is lost"
	delayed   = "the commit arrives later than the loss is noticed"
	half      = "the process stops while it sends a large content"
	connected = ""
)

// newNetwork returns a network, and the address that leads through it.
func newNetwork(t *testing.T, s *pgtest.Server, address string) (*network, string) {
	t.Helper()
	n := &network{T: t, server: s.Socket()}
	n.cut.Store(connected)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go n.carry(client)
		}
	}()
	through, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	through.Host, through.RawQuery = listener.Addr().String(), "sslmode=disable"
	return n, through.String()
}

// syncMessage ends what a client sends before it waits: "Sync" in the manual of PostgreSQL, chapter "Message Formats".
var syncMessage = []byte{'S', 0, 0, 0, 4}

func (n *network) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", n.server)
	if err != nil {
		return // the server is down
	}
	defer server.Close()
	var silent atomic.Bool
	go func() {
		defer client.Close()
		buffer := make([]byte, 1<<16)
		for {
			got, err := server.Read(buffer)
			if n.pass(); silent.Load() || err != nil {
				return
			}
			if _, err := client.Write(buffer[:got]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 1<<20)
	for {
		got, err := client.Read(buffer)
		if err != nil {
			return
		}
		n.pass()
		message := buffer[:got]
		if !bytes.Contains(message, []byte("pg_notify")) {
			n.trips.Add(int64(bytes.Count(message, syncMessage)))
		}
		if got >= 1<<16 && n.cut.CompareAndSwap(half, connected) {
			n.gate.Lock()
			defer n.gate.Unlock()
			n.cuts.Add(1)
			_, _ = server.Write(message[:got/2])
			<-n.Context().Done()
			return
		}
		if bytes.Contains(message, []byte(`"record":{`)) && bytes.Contains(message, []byte("COMMIT")) {
			if how := n.cut.Swap(connected).(string); how != connected {
				n.cuts.Add(1)
				silent.Store(true)
				n.lose(how, client, server, message)
				return
			}
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

func (n *network) lose(how string, client, server net.Conn, message []byte) {
	switch how {
	case answer:
		_, err := server.Write(message)
		if _, reading := server.Read(make([]byte, 1)); err != nil && reading != nil && !errors.Is(reading, io.EOF) {
			n.Errorf("the server did not get the commit: %v, %v", err, reading)
		}
	case delayed:
		client.Close()
		time.Sleep(100 * time.Millisecond)
		_, _ = server.Write(message) // the server may have ended the transaction
		time.Sleep(100 * time.Millisecond)
	}
}

// own returns a server for a test that ends it.
func own(t *testing.T) (s *pgtest.Server, address string) {
	t.Helper()
	s = pgtest.New(t, "fsync=off")
	return s, s.Database(t)
}
