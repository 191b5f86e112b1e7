package postgres

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// channel is the name of the channel on which processes announce commits. The payload of a notification is the number of the
// process.
const channel = "stone"

// coalesce is the period within which all commits share one notification.
const coalesce = 10 * time.Millisecond

// news announces commits to other processes, and receives their announcements. A notification is sent in a separate transaction,
// because committing it locks the whole database.
type news struct {
	*database
	changes chan struct{}
	ctx     context.Context // canceled when the database is closed
	stop    context.CancelFunc
	telling sync.Once

	mu      sync.Mutex // protects starting and stopping
	running sync.WaitGroup
}

func newNews(d *database) *news {
	n := &news{database: d, changes: make(chan struct{}, 1)}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// start runs f in a goroutine, unless the database is already closed. The function must return when the database is closed.
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
	default: // a notification is already pending
	}
}

// tell notifies other processes. It ignores errors, because the other processes also poll.
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
		statement{text: "SET LOCAL synchronous_commit = off"}, // losing a notification is harmless
		statement{text: "SELECT pg_notify($1, $2)", args: []any{channel, n.own()}},
		statement{text: "COMMIT"})
}

// own returns the payload of this process's notifications. The number of a process can change.
func (n *news) own() string { return strconv.FormatInt(n.id.Load(), 10) }

func (n *news) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.ctx.Done():
	}
}

// Listen implements [log.Database].
func (d *database) Listen(wake func()) { d.news.start(func() { d.news.listen(wake) }) }

// listen calls wake after notifications from other processes. If the connection is lost, it connects again.
func (n *news) listen(wake func()) {
	for n.ctx.Err() == nil {
		_ = n.hear(wake) // in the meantime, followers poll
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
	for wake(); ; wake() { // commits before LISTEN have not been announced to this process
		for len(heard) == 0 {
			if err := conn.WaitForNotification(n.ctx); err != nil {
				return err
			}
		}
		n.sleep(coalesce)
		<-heard
	}
}
