package search

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/x/retrieve"
)

// share returns the opener of an index. All capabilities of a configuration that use the same index receive the same opener, so
// that they share the open index and its codes in memory. The configuration closes the opener.
func share(r *kinds.Reader, index string) *opener {
	all, _ := r.Parts["search"].(map[string]*opener)
	if all == nil {
		all = map[string]*opener{}
		r.Parts["search"] = all
	}
	address := redact.FullDatabase(index, kinds.IndexEnv, r.Found)
	o := all[address]
	if o == nil {
		o = &opener{index: index, address: address}
		all[address] = o
		r.Closers = append(r.Closers, o.close)
	}
	return o
}

// An opener opens an index for searches: at the first search, after a failure, and when the file has been replaced. Searches that
// need the index wait for the same attempt, each as long as its context allows. A file that was replaced is closed after the last
// search that uses it.
type opener struct {
	index   string // file of the index, or address of its database
	address string // address including the password

	mu    sync.Mutex
	now   *opened
	next  *attempt // current attempt to open the index, or nil
	ended bool
}

// opened is an open index.
type opened struct {
	*retrieve.Store
	info  os.FileInfo
	users int
	old   bool // closed when the last search that uses it has ended
}

// An attempt is an attempt to open an index.
type attempt struct {
	waiting int // number of waiting searches; when all have given up, the attempt is canceled
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // error of the attempt, once it is done
}

var errClosed = errors.New("the index was closed")

// open returns the store and a function that the caller must call when the search has ended.
func (o *opener) open(ctx context.Context) (*retrieve.Store, func() error, error) {
	for {
		info := o.stat()
		o.mu.Lock()
		if o.ended {
			o.mu.Unlock()
			return nil, nil, errClosed
		}
		if used := o.now; used != nil && (redact.IsDatabase(o.index) || info != nil && os.SameFile(info, used.info)) {
			used.users++
			o.mu.Unlock()
			return used.Store, func() error { return o.release(used) }, nil
		}
		if o.next == nil {
			o.next = o.begin(ctx, info)
		}
		a := o.next
		a.waiting++
		o.mu.Unlock()
		select {
		case <-a.done:
		case <-ctx.Done():
		}
		o.mu.Lock()
		if a.waiting--; a.waiting == 0 && o.next == a { // nobody is waiting for the attempt any more
			a.cancel()
			o.next = nil
		}
		o.mu.Unlock()
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if a.err != nil {
			return nil, nil, a.err
		}
	}
}

func (o *opener) stat() os.FileInfo {
	if redact.IsDatabase(o.index) {
		return nil
	}
	info, _ := os.Stat(o.index) // nil if the file does not exist
	return info
}

// begin starts an attempt to open the index. The caller holds the lock.
func (o *opener) begin(ctx context.Context, info os.FileInfo) *attempt {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer cancel()
		defer close(a.done)
		store, err := retrieve.Open(ctx, o.address, false)
		o.mu.Lock()
		defer o.mu.Unlock()
		wanted := o.next == a
		if wanted {
			o.next = nil
		}
		switch {
		case errors.Is(err, retrieve.ErrNone):
			a.err = fmt.Errorf("%w: run stone index DIR", err)
		case err != nil:
			a.err = err
		case o.ended || !wanted:
			a.err = errors.Join(errClosed, store.Close())
		default:
			a.err = o.retire()
			o.now = &opened{Store: store, info: info}
		}
	}()
	return a
}

func (o *opener) release(used *opened) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if used.users--; used.users > 0 || !used.old {
		return nil
	}
	return used.Close()
}

// retire closes the open file, either now or after the last search that uses it.
func (o *opener) retire() error {
	if o.now == nil {
		return nil
	}
	if o.now.old = true; o.now.users > 0 {
		return nil
	}
	return o.now.Close()
}

func (o *opener) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return nil
	}
	if o.ended = true; o.next != nil {
		o.next.cancel()
	}
	return o.retire()
}

// say returns the text of an error without the location of the index, which remote callers must not see.
func (o *opener) say(err error) string {
	text, name := err.Error(), o.index
	if redact.IsDatabase(o.index) {
		u, failed := url.Parse(o.index)
		if failed != nil || strings.Contains(text, "failed to connect") {
			return "the database of the index cannot be reached: stone search says why"
		}
		name = u.Hostname() + u.Path
	}
	return strings.NewReplacer("index "+name+":", "the index:", " in "+name, "", name, "the index").Replace(text)
}
