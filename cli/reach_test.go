//go:build unix

package cli_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// wires has the servers of scripts, by their addresses.
var wires sync.Map

// A wire is a server that counts its connections and keeps what they send. It asks clients of PostgreSQL for a password in
// clear text.
type wire struct {
	sync.Mutex
	count int
	text  strings.Builder
}

// listener starts a wire at the address $ADDRESS.
func listener(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv("ADDRESS", l.Addr().String())
	w := &wire{}
	wires.Store(l.Addr().String(), w)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.Lock()
			w.count++
			w.Unlock()
			go w.serve(conn)
		}
	}()
}

func (w *wire) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second)) // an error shows at the next reading
	for range 2 {
		buf := make([]byte, 4096)
		n, err := conn.Read(buf)
		w.Lock()
		w.text.Write(buf[:n])
		w.Unlock()
		if err != nil {
			return
		}
		if _, err := conn.Write([]byte("R\x00\x00\x00\x08\x00\x00\x00\x03")); err != nil {
			return
		}
	}
}

// reached says that somebody connected to $ADDRESS, and sent no password of the variable PGPASSWORD; "! reached" that
// nobody did.
func reached(ts *testscript.TestScript, neg bool, _ []string) {
	address := ts.Getenv("ADDRESS")
	// Connections are accepted in their order: with one of our own, all before it are counted.
	conn, err := net.Dial("tcp", address)
	ts.Check(err)
	_, err = io.WriteString(conn, "own")
	ts.Check(err)
	_, err = io.ReadFull(conn, make([]byte, 1))
	ts.Check(err)
	ts.Check(conn.Close())
	all, _ := wires.Load(address)
	w := all.(*wire)
	w.Lock()
	defer w.Unlock()
	w.count--
	if neg != (w.count == 0) {
		ts.Fatalf("%d connections: %q", w.count, w.text.String())
	}
	if secret := ts.Getenv("PGPASSWORD"); secret == "" || strings.Contains(w.text.String(), secret) {
		ts.Fatalf("the password was sent: %q", w.text.String())
	}
}
