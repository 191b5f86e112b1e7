package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/internal/webhook"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// An outbox sends the notices that the journal lists as owed. A loop claims each notice, sends it and records the outcome.
type outbox struct {
	s         *Server
	store     owed.Store            // nil if the journal cannot store notices
	hooks     map[string]*hook      // by name
	protocols map[string]*Receivers // by name
	wake      chan struct{}         // signals that a notice may be due

	mu        sync.Mutex
	receivers map[string]*receiver // state of receivers known to this server
	tenants   map[string]int       // number of current attempts to reach receivers of runs, by group
	sending   int                  // current attempts
}

var errNoOutbox = errors.New("the journal keeps no notices: want a journal of package journal, not a wrapper of one")

const (
	mostSending = 128             // concurrent attempts
	sendingTo   = 8               // concurrent attempts to one receiver, or to all receivers of a tenant's runs
	claimed     = time.Minute     // time after which another server may take over a claimed notice; longer than an attempt takes
	retryFor    = 72 * time.Hour  // time after which no further attempt is made
	downAfter   = 3               // failed attempts after which a receiver counts as down
	maxProbe    = 5 * time.Minute // the longest pause between attempts at a receiver that is down
	duePage     = 64
	mostKnown   = 10_000 // failed receivers that a server remembers
)

// A receiver is what this server knows about a receiver of notices. While the receiver is down, only one notice at a time is sent
// to it, with growing pauses between attempts. The other notices wait without being written to the journal.
type receiver struct {
	sending int
	failed  int           // number of failed attempts since the receiver last answered
	pause   time.Duration // pause before the next attempt, while the receiver is down
	next    time.Time     // earliest time of the next attempt
}

func newOutbox(s *Server, j journal.Journal) *outbox {
	store, _ := j.(owed.Store)
	return &outbox{s: s, store: store, hooks: map[string]*hook{}, protocols: map[string]*Receivers{}, wake: make(chan struct{}, 1), receivers: map[string]*receiver{}, tenants: map[string]int{}}
}

// hurry makes the loop look for due notices now.
func (o *outbox) hurry() {
	select {
	case o.wake <- struct{}{}:
	default: // the loop has already been signaled
	}
}

// run sends due notices until the server shuts down.
func (o *outbox) run(ctx context.Context) {
	ticks := time.NewTicker(o.s.cfg.Scan)
	defer ticks.Stop()
	for {
		if err := o.send(ctx); err != nil && ctx.Err() == nil && !o.s.closing() {
			o.s.cfg.Log.Error("look for webhooks to send", "error", err)
		}
		select {
		case <-ticks.C:
		case <-o.wake:
		case <-o.s.drain:
			return
		case <-ctx.Done():
			return
		}
	}
}

// send starts attempts for due notices while there are free places.
func (o *outbox) send(ctx context.Context) error {
	var but []string // receivers that must wait
	for {
		due, err := o.store.Due(ctx, time.Now(), but, duePage)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, n := range due {
			switch {
			case o.s.closing() || ctx.Err() != nil || o.full():
				return nil
			case slices.Contains(but, n.Receiver):
			case !o.admits(n):
				but = append(but, n.Receiver)
			default:
				started, err := o.claim(ctx, n)
				if !started {
					o.leave(n)
				}
				if err != nil {
					return err
				}
			}
		}
	}
}

func (o *outbox) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sending >= mostSending
}

// admits reports whether an attempt to send the notice may start now. If so, it reserves a place for the attempt.
func (o *outbox) admits(n owed.Notice) bool {
	protocol, _, _ := strings.Cut(n.Name, "/")
	if n.Name == "" && o.hooks[n.Receiver] == nil || n.Name != "" && o.protocols[protocol] == nil {
		return false // another server sends this notice
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.receivers[n.Receiver]
	if r == nil {
		if len(o.receivers) >= mostKnown { // attempts will restore the state that is forgotten here
			maps.DeleteFunc(o.receivers, func(_ string, r *receiver) bool { return r.sending == 0 })
		}
		r = &receiver{}
		o.receivers[n.Receiver] = r
	}
	tenant, now := tenantOf(n), time.Now()
	down := r.failed >= downAfter
	if r.sending >= sendingTo || tenant != "" && o.tenants[tenant] >= sendingTo || down && (r.sending > 0 || now.Before(r.next)) {
		return false
	}
	if down {
		r.next, r.pause = now.Add(r.pause), min(2*r.pause, maxProbe)
	}
	o.sending++
	r.sending++
	if tenant != "" {
		o.tenants[tenant]++
	}
	return true
}

// tenantOf returns the name of the group, a tenant within a protocol, whose receivers share places for attempts.
func tenantOf(n owed.Notice) string {
	tenant, _, _ := strings.Cut(n.Receiver, " ")
	if n.Name == "" {
		return ""
	}
	return tenant
}

// leave releases the place that admits reserved.
func (o *outbox) leave(n owed.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sending--
	r := o.receivers[n.Receiver]
	if r.sending--; r.sending == 0 && r.failed == 0 {
		delete(o.receivers, n.Receiver)
	}
	if tenant := tenantOf(n); tenant != "" {
		if o.tenants[tenant]--; o.tenants[tenant] == 0 {
			delete(o.tenants, tenant)
		}
	}
}

// A target is the destination of a notice.
type target struct {
	sender *webhook.Sender
	url    string
	header map[string]string
	keys   [][]byte
}

// claim starts an attempt to send a notice, unless the notice is no longer owed or another server has claimed it.
func (o *outbox) claim(ctx context.Context, n owed.Notice) (started bool, err error) {
	tries := n.Tries
	to, owes, err := o.target(ctx, n)
	if err == nil && owes && n.Body == nil {
		n.Body, owes, err = o.body(ctx, n)
	}
	switch n.Tries++; {
	case errors.Is(err, journal.ErrUnavailable) || ctx.Err() != nil:
		return false, err
	case err != nil: // such as a damaged run: the notices of other runs are still sent
		o.s.cfg.Log.Error("a webhook was not sent", "run", n.Run, "error", err)
		if n.Next, n.Body = time.Now().Add(owed.LongestPause/2), nil; time.Since(n.At) > retryFor {
			n.Next = time.Time{}
		}
		_, err = o.store.PutNotice(ctx, n, tries)
		return false, err
	case !owes:
		n.Next, n.Body = time.Time{}, nil
		_, err = o.store.PutNotice(ctx, n, tries)
		return false, err
	}
	n.Next = time.Now().Add(claimed)
	if started, err = o.store.PutNotice(ctx, n, tries); started {
		o.s.running.Go(func() {
			o.deliver(context.WithoutCancel(ctx), n, to)
			o.leave(n)
			o.hurry()
		})
	}
	return started, err
}

// deliver makes one attempt to send the notice, and records the outcome.
func (o *outbox) deliver(ctx context.Context, n owed.Notice, to target) {
	about, _ := json.Marshal([]string{n.Run, n.Receiver, n.Name, n.Event}) // cannot fail: every string has a JSON form
	err := to.sender.Send(ctx, to.url, digestID("msg_", about), n.Body, to.header, to.keys...)
	down := o.tried(n, err)
	now := time.Now()
	age := now.Sub(n.At)
	pause := min(max(age, o.s.cfg.Scan), owed.LongestPause)
	if down { // the receiver's own pause applies
		pause = min(pause, maxProbe)
	}
	n.Next = now.Add(pause)
	result, status := "failed", webhook.StatusError(0)
	switch {
	case err == nil:
		result, n.Next, n.Body = "ok", time.Time{}, nil
	case age > retryFor || errors.As(err, &status) && status == http.StatusGone:
		n.Next, n.Body = time.Time{}, nil
	}
	if o.s.meters.webhooks.Add(1, result); err != nil && n.Next.IsZero() {
		o.s.meters.webhooks.Add(1, "dropped")
		o.s.cfg.Log.Warn("a webhook was given up", "run", n.Run, "receiver", n.Receiver)
	}
	if _, err := o.store.PutNotice(ctx, n, n.Tries); err != nil { // the notice will be sent again
		o.s.cfg.Log.Error("a webhook was sent, which could not be noted", "run", n.Run, "error", err)
	}
}

// tried records the outcome of an attempt, and reports whether the receiver is down.
func (o *outbox) tried(n owed.Notice, err error) (down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.receivers[n.Receiver]
	if err == nil || answered(err) {
		r.failed, r.pause = 0, 0
		return false
	}
	if r.failed++; r.failed == downAfter {
		r.pause, r.next = o.s.cfg.Scan, time.Now().Add(o.s.cfg.Scan)
	}
	return r.failed >= downAfter
}

// answered reports whether a receiver read and rejected the notice.
func answered(err error) bool {
	status, ok := errors.AsType[webhook.StatusError](err)
	return ok && (status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity)
}

// target returns the destination of a notice. If the receiver was removed, the notice is no longer owed.
func (o *outbox) target(ctx context.Context, n owed.Notice) (to target, owes bool, err error) {
	if n.Name == "" {
		h := o.hooks[n.Receiver]
		return target{h.sender, h.URL, nil, h.keys}, true, nil
	}
	protocol, _, _ := strings.Cut(n.Name, "/")
	all, err := o.store.Receivers(ctx, n.Run)
	for _, one := range all {
		if one.Name == n.Name {
			var r Receiver
			err := json.Unmarshal(one.Data, &r)
			to = target{o.protocols[protocol].sender, r.URL, r.Header, nil}
			if key, err := webhook.Key(r.Secret); err == nil {
				to.keys = [][]byte{key}
			}
			return to, true, err
		}
	}
	return to, false, err
}

// body returns the body of a notice. The notice is no longer owed if its run has continued or its question has been answered.
func (o *outbox) body(ctx context.Context, n owed.Notice) (body []byte, owes bool, err error) {
	info, err := o.s.exactly(ctx, n.Run)
	if errors.Is(err, journal.ErrNoRun) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	who := Principal{Tenant: info.Labels[tenantLabel]}
	if n.Type() == "question.asked" {
		src, _ := sourceOf(info)
		for q, err := range o.s.cfg.Journal.EachQuestion(ctx, journal.QuestionQuery{Run: n.Run, Open: true}) {
			if err != nil {
				return nil, false, err
			}
			if !asksForBatch(src, q) && owed.Asked(q.Path, q.Problem, q.Asked) == n.Event {
				asked, page := question(who, q), n.Run
				if h := o.hooks[n.Receiver]; h != nil { // the receiver sees the run as its tenant does
					page = nameOf(Principal{Tenant: h.Tenant}, page)
				}
				body, err := json.Marshal(api.Notice{Type: n.Type(), Timestamp: q.Asked, Question: &asked, URL: o.s.pageOf(page)})
				return body, true, err
			}
		}
		return nil, false, nil
	}
	if owed.Stopped(string(info.State), info.Ended) != n.Event {
		return nil, false, nil
	}
	if n.Name != "" {
		who.Roles = []Role{Read}
		protocol, _, _ := strings.Cut(n.Name, "/")
		body, err := o.protocols[protocol].body(ctx, who, run(who, info))
		return body, true, err
	}
	described := run(who, info)
	body, err = json.Marshal(api.Notice{Type: n.Type(), Timestamp: info.Ended, Run: &described})
	return body, true, err
}

func digestID(prefix string, about []byte) string {
	sum := sha256.Sum256(about)
	return prefix + hex.EncodeToString(sum[:16])
}

// pageOf returns the address of a run's page, or "" if Config.URL is empty.
func (s *Server) pageOf(run string) string {
	if s.cfg.URL == "" {
		return ""
	}
	return strings.TrimSuffix(s.cfg.URL, "/") + "/runs/" + url.PathEscape(run)
}
