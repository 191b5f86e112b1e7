package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/x/internal/spans"
)

// Limits of a Live.
const (
	maxQueue = 8192     // number of spans waiting to be sent
	maxHeld  = 32 << 20 // approximate size of open and waiting spans in bytes
	oldest   = time.Second
	lastTime = 5 * time.Second // maximum time that Close spends on sending the rest
)

// A Live is an event.Watcher for any number of runs that sends their spans while the runs are in progress. A run never waits for
// a Live: spans that the collector does not accept in time are dropped. It does not use the OpenTelemetry SDK, with which every
// program that calls cli.Main would link 35 modules instead of 15.
type Live struct {
	out   *sender
	say   func(string)
	queue chan *span
	held  atomic.Int64
	ended chan struct{}

	mu     sync.Mutex
	maker  *spans.Maker
	closed bool

	hurry   context.CancelFunc      // ends the pauses between attempts
	stop    context.CancelCauseFunc // cancels requests
	dropped atomic.Int64
	why     atomic.Pointer[error] // error because of which the first spans were dropped
}

// NewLive starts and returns a Live. The Live calls say when it drops spans for the first time and, if it has dropped any, again
// in Close with their number.
func NewLive(cfg Config, say func(string)) (*Live, error) {
	out, err := newSender(cfg)
	if err != nil {
		return nil, err
	}
	l := &Live{out: out, say: say, queue: make(chan *span, maxQueue), ended: make(chan struct{})}
	l.maker = spans.New(emitter{l.emit, &l.held})
	l.maker.Messages = cfg.Messages
	patient, hurry := context.WithCancel(context.Background())
	ctx, stop := context.WithCancelCause(context.Background())
	l.hurry, l.stop = hurry, stop
	out.stubborn, out.waiting = true, func(ctx context.Context, d time.Duration) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(patient, cancel)()
		return retryafter.Sleep(ctx, d)
	}
	go l.run(ctx)
	return l, nil
}

// Wants implements event.Watcher.
func (l *Live) Wants(_ context.Context, level slog.Level) bool { return level > event.LevelDelta }

// Watch implements event.Watcher.
func (l *Live) Watch(_ context.Context, e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.maker.Add(e)
	}
}

// emit queues a span.
func (l *Live) emit(sp *span) {
	select {
	case l.queue <- sp:
	default:
		l.held.Add(-int64(sp.size))
		l.drop(1, errors.New("the collector is too slow"))
	}
}

func (l *Live) drop(n int, why error) {
	l.why.CompareAndSwap(nil, &why)
	l.dropped.Add(int64(n))
}

// run sends queued spans until the queue is closed.
func (l *Live) run(ctx context.Context) {
	defer close(l.ended)
	tick := time.NewTicker(oldest)
	defer tick.Stop()
	for said := false; ; {
		select {
		case sp, open := <-l.queue:
			if !open {
				l.flush(ctx)
				return
			}
			if l.out.size+sp.size > maxBatch {
				l.flush(ctx)
			}
			l.out.batch, l.out.size = append(l.out.batch, sp), l.out.size+sp.size
			if len(l.out.batch) == maxSpans {
				l.flush(ctx)
			}
		case <-tick.C:
			if l.flush(ctx); !said && l.dropped.Load() > 0 {
				said = true
				l.say(fmt.Sprintf("telemetry: spans are dropped: %v", *l.why.Load()))
			}
		}
	}
}

// flush sends the batch. If that fails, it drops the batch.
func (l *Live) flush(ctx context.Context) {
	n, size, before := len(l.out.batch), l.out.size, l.out.report
	err := l.out.flush(ctx)
	l.held.Add(-int64(size))
	if n -= l.out.report.Sent - before.Sent; n == 0 {
		return
	}
	if err == nil {
		err = fmt.Errorf("the collector rejected them: %s", cmp.Or(l.out.rejection, "it gives no reason"))
	}
	l.drop(n, err)
}

// Close ends all open spans and returns when all spans have been sent or, after at most 5 s, dropped.
func (l *Live) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.maker.Finish()
	l.closed = true
	close(l.queue)
	l.mu.Unlock()
	l.hurry()
	late := time.AfterFunc(lastTime, func() { l.stop(fmt.Errorf("the collector did not answer within %s", lastTime)) })
	<-l.ended
	late.Stop()
	l.stop(nil)
	if n := int(l.dropped.Load()); n > 0 {
		l.say(fmt.Sprintf("telemetry: %d of %d spans were dropped: %v", n, n+l.out.report.Sent, *l.why.Load()))
	}
}
