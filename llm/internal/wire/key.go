package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/llm"
)

// keys caches the key for requests, which comes from a KeyFunc.
type keys struct {
	read llm.KeyFunc
	busy chan struct{} // a lock whose waiters respect their contexts
	key  llm.Secret
	end  time.Time // time when the key is read again; zero means only after the server rejects it
	// secret contains the key and the previous key, which a late error may quote.
	secret atomic.Pointer[redact.Set]
}

func newKeys(read llm.KeyFunc) *keys {
	if read == nil {
		return nil
	}
	return &keys{read: read, busy: make(chan struct{}, 1)}
}

// early is the time before a key expires at which the key is read again. If a tenth of the key's lifetime is shorter, that time
// applies instead.
const early = time.Minute

// get returns the key. It calls the KeyFunc if there is no key yet, if the key is about to expire, or if the server has rejected
// it.
func (k *keys) get(ctx context.Context, refused llm.Secret) (llm.Secret, error) {
	select {
	case k.busy <- struct{}{}:
		defer func() { <-k.busy }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	now := time.Now()
	if k.key != "" && k.key != refused && (k.end.IsZero() || now.Before(k.end)) {
		return k.key, nil
	}
	key, end, err := k.read(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("llm: no key: %w", err)
	case key == "" || key == llm.NoKey:
		return "", errors.New("llm: KeyFunc returned no key")
	}
	if !end.IsZero() {
		end = end.Add(-min(early, max(end.Sub(now), 0)/10))
	}
	secret := new(redact.Set)
	secret.NoteHeader(string(key), string(k.key))
	k.secret.Store(secret)
	k.key, k.end = key, end
	return key, nil
}

// keyed sends the request with its key. If the server rejects the key with status 401, the key is read again and, if it has
// changed, the request is sent once more.
func (c *Client) keyed(ctx context.Context, send func(key llm.Secret) (*http.Response, error)) (*http.Response, error) {
	if c.keys == nil {
		return send("")
	}
	key, err := c.key(ctx, "")
	if err != nil {
		return nil, err
	}
	resp, err := send(key)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	renewed, err := c.key(ctx, key)
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	if renewed == key {
		return resp, nil
	}
	resp.Body.Close()
	return send(renewed)
}

// key returns the key and registers it as a secret of the run.
func (c *Client) key(ctx context.Context, refused llm.Secret) (llm.Secret, error) {
	key, err := c.keys.get(ctx, refused)
	if err == nil {
		redact.From(ctx).Join(c.keys.secret.Load())
	}
	return key, err
}

// secrets returns the set of keys to redact, or nil if there are none.
func (k *keys) secrets() *redact.Set {
	if k == nil {
		return nil
	}
	return k.secret.Load()
}
