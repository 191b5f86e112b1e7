package serve

import (
	"container/list"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	// mostWaiting is the maximum number of connections from one address that have waited longer than patience for a request or
	// its body.
	mostWaiting = 256
	patience    = 3 * time.Second
	// mostAtOnce is the maximum number of waiting connections from one address, however short their wait.
	mostAtOnce = 16 * mostWaiting
)

// conns limits, for each address, the number of connections that are waiting for a request or its body, by closing the oldest. A
// client that keeps opening connections therefore blocks nobody, not even other clients at the same address. If many clients
// connect at once, for example through a proxy, they have time to send their requests. Connections whose request is being
// answered do not count; otherwise all clients behind a proxy would share one limit.
type conns struct {
	mu  sync.Mutex
	all map[net.Conn]*conn
	by  map[netip.Prefix]*queue
}

// A queue holds the waiting connections of one address, as *conn, oldest first.
type queue struct {
	list.List
	watched bool // a timer is set for the oldest connection
}

type conn struct {
	net.Conn
	from  netip.Prefix
	in    *list.Element // element in the queue; nil while a request is being answered
	since time.Time     // start of the wait
}

type connKey struct{}

// bound makes a server limit its waiting connections.
func bound(s *http.Server) {
	c := &conns{all: map[net.Conn]*conn{}, by: map[netip.Prefix]*queue{}}
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c.enter(nc))
	}
	s.ConnState = c.changed
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := r.Context().Value(connKey{}).(*conn)
		if r.ContentLength == 0 {
			c.arrived(from)
		} else {
			r.Body = body{r.Body, func() { c.arrived(from) }}
		}
		next.ServeHTTP(w, r)
	})
}

// body calls arrived when the body has been read to its end.
type body struct {
	io.ReadCloser
	arrived func()
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.arrived()
	}
	return n, err
}

// enter adds a new connection, which is waiting for a request.
func (c *conns) enter(nc net.Conn) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &conn{Conn: nc, from: addressOf(nc)}
	c.all[nc] = added
	c.wait(added)
	return added
}

// changed is called when the state of a connection changes.
func (c *conns) changed(nc net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.all[nc]
	switch {
	case of == nil:
	case state == http.StateIdle:
		c.wait(of)
	case state == http.StateClosed || state == http.StateHijacked:
		c.leave(of)
		delete(c.all, nc)
	}
}

// arrived is called when a request has been received, including its body.
func (c *conns) arrived(of *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(of)
}

// wait adds a connection to the queue of its address. The caller holds c.mu.
func (c *conns) wait(of *conn) {
	if of.in != nil {
		return
	}
	waiting := c.by[of.from]
	if waiting == nil {
		waiting = new(queue)
		c.by[of.from] = waiting
	}
	of.in, of.since = waiting.PushBack(of), time.Now()
	c.thin(waiting)
}

// thin closes the oldest connections beyond the limit. If the oldest remaining connection may not be closed yet, a timer calls
// thin again later. The caller holds c.mu.
func (c *conns) thin(waiting *queue) {
	for n := waiting.Len(); n > mostWaiting; n-- {
		oldest := waiting.Front().Value.(*conn)
		if left := patience - time.Since(oldest.since); left > 0 && n <= mostAtOnce {
			if !waiting.watched {
				waiting.watched = true
				time.AfterFunc(left, func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					waiting.watched = false
					c.thin(waiting)
				})
			}
			return
		}
		c.leave(oldest)
		_ = oldest.Close() // the connection's handler will notice
	}
}

// leave removes a connection from its queue. The caller holds c.mu.
func (c *conns) leave(of *conn) {
	if of.in == nil {
		return
	}
	waiting := c.by[of.from]
	waiting.Remove(of.in)
	if of.in = nil; waiting.Len() == 0 {
		delete(c.by, of.from)
	}
}

// addressOf returns the address of a client or, for IPv6, the network of the address, because one client owns a whole network.
func addressOf(nc net.Conn) netip.Prefix {
	at, err := netip.ParseAddrPort(nc.RemoteAddr().String())
	if err != nil {
		return netip.Prefix{} // for other kinds of listeners, all clients count as one
	}
	bits := 64
	addr := at.Addr().Unmap()
	if addr.Is4() {
		bits = 32
	}
	from, _ := addr.WithZone("").Prefix(bits) // cannot fail for this number of bits
	return from
}
