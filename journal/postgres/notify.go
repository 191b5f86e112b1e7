package postgres

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// channel is the name of the channel on which processes announce commits. The payload is the number of the process.
const channel = "stone"

// coalesce is the time in which commits share a notification.
const coalesce = 10 * time.Millisecond

// news announces commits to other processes and receives theirs. A notification has its own transaction, because its commit locks
// the whole database.
type news struct {
	*database
	changes chan struct{}
	ctx     context.Context // done when the database is closed
	stop    context.CancelFunc
	telling sync.Once

	mu      sync.Mutex // starting and stopping
	running sync.WaitGroup
}

func newNews(d *database) *news {
	n := &news{database: d, changes: make(chan struct{}, 1)}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// start runs a function until the database is closed, unless it already is.
func (n *news) start(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() == nil {
		n.running.Go(f)
	}
}

// changed is called after each commit.
func (n *news) changed() {
	n.telling.Do(func() { n.start(n.tell) })
	select {
	case n.changes <- struct{}{}:
	default: // it will be told
	}
}

// tell notifies other processes. It ignores errors, because they also poll.
func (n *news) tell() {
	for {
		select {
		case <-n.changes:
		case <-n.ctx.Done():
			return
		}
		_ = n.notify()
		n.sleep(coalesce)
	}
}

func (n *news) notify() error {
	ctx, cancel := n.within(n.ctx, 0)
	defer cancel()
	conn, err := n.pool.take(ctx)
	if err != nil {
		return err
	}
	defer n.pool.give(conn)
	return exchange(ctx, conn,
		statement{text: "BEGIN"},
		statement{text: "SET LOCAL synchronous_commit = off"}, // losing it is harmless
		statement{text: "SELECT pg_notify($1, $2)", args: []any{channel, n.own()}},
		statement{text: "COMMIT"})
}

// own returns the payload of this process, whose number can change.
func (n *news) own() string { return strconv.FormatInt(n.id.Load(), 10) }

func (n *news) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.ctx.Done():
	}
}

// Listen implements [log.Database].
func (d *database) Listen(wake func()) { d.news.start(func() { d.news.listen(wake) }) }

// listen calls wake after notifications of other processes. It connects again when the
// connection is lost.
func (n *news) listen(wake func()) {
	for n.ctx.Err() == nil {
		_ = n.hear(wake) // followers poll meanwhile
		n.sleep(time.Second/2 + rand.N(time.Second))
	}
}

func (n *news) hear(wake func()) error {
	config := n.listening.Copy()
	heard := make(chan struct{}, 1)
	config.OnNotification = func(_ *pgconn.PgConn, note *pgconn.Notification) {
		if note.Payload == n.own() {
			return
		}
		select {
		case heard <- struct{}{}:
		default:
		}
	}
	ctx, cancel := n.within(n.ctx, 0)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer drop(conn)
	if _, err := conn.Exec(ctx, "LISTEN "+channel).ReadAll(); err != nil {
		return err
	}
	for wake(); ; wake() { // commits before LISTEN were not announced
		for len(heard) == 0 {
			if err := conn.WaitForNotification(n.ctx); err != nil {
				return err
			}
		}
		n.sleep(coalesce)
		<-heard
	}
}
