// Package token stores the tokens of a server in a file. For each token, the file contains the token's digest and its holder's
// rights.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/flock"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/regular"
)

// Prefix is the prefix of every token. It lets scanners for leaked secrets recognize tokens.
const Prefix = "stone_"

// A Token is the entry for one token in a token file.
type Token struct {
	Name    string        `json:"name"`
	Digest  string        `json:"digest"`               // SHA-256 of the token, in hexadecimal
	Tenant  string        `json:"tenant,omitempty"`     // tenant of the holder; if empty, the holder sees all runs
	Roles   []string      `json:"roles"`                // see serve.Role
	Grant   []string      `json:"grant,omitzero"`       // effects that runs may have; null allows all, an empty list none
	Limits  budget.Limits `json:"limits,omitzero"`      // limits of each run
	Minute  *int          `json:"per-minute,omitempty"` // maximum requests per minute; absent means unlimited
	Runs    *int          `json:"runs,omitempty"`       // maximum concurrent runs per process; absent means unlimited
	Streams int           `json:"streams,omitempty"`    // maximum concurrent streams and waits per process; 0 means the default
	// Interactive means that runs started with the token may take precedence over other runs.
	Interactive bool      `json:"interactive,omitempty"`
	USDADay     *float64  `json:"usd-a-day,omitempty"` // daily limit on the cost of the token's runs, in USD; absent means unlimited
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires,omitzero"`
}

// roles lists the roles defined in package serve.
var roles = []string{"read", "start", "force", "grant", "answer", "act", "scrape"}

var word = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

func (t Token) check() error {
	if !word.MatchString(t.Name) {
		return fmt.Errorf("the name %q: want up to 40 of a-z, 0-9 and \"-\", a letter or digit first", t.Name)
	}
	if t.Tenant != "" && !word.MatchString(t.Tenant) {
		return fmt.Errorf("the tenant %q: want up to 40 of a-z, 0-9 and \"-\", a letter or digit first", t.Tenant)
	}
	for _, r := range t.Roles {
		if !slices.Contains(roles, r) {
			return fmt.Errorf("unknown role %q: want %s", r, strings.Join(roles, ", "))
		}
	}
	if len(t.Roles) == 0 {
		return fmt.Errorf("a token without a role can do nothing: give it at least one of %s", strings.Join(roles, ", "))
	}
	for _, e := range t.Grant {
		if err := grants.Check(e); err != nil {
			return err
		}
	}
	return nil
}

// A File is a token file. It is safe for concurrent use. Changes made by other processes take effect within a second.
type File struct {
	name string

	mu     sync.Mutex
	looked time.Time // time of the last check whether the file has changed
	stamp  fs.FileInfo
	exists bool
	tokens []Token
}

// Open opens a token file, which need not exist.
func Open(name string) (*File, error) {
	f := &File{name: name}
	return f, f.read()
}

// Copy copies a token file and returns the opened copy.
func Copy(from, to string) (*File, error) {
	old, err := Open(from)
	if err != nil {
		return nil, err
	}
	f := &File{name: to}
	return f, f.change(func([]Token) ([]Token, error) { return old.tokens, nil })
}

// content is the JSON content of the file.
type content struct {
	Tokens []Token `json:"tokens"`
}

func (f *File) read() error {
	info, err := os.Stat(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		f.tokens, f.stamp, f.exists = nil, nil, false
		return nil
	}
	if err != nil {
		return err
	}
	if f.stamp != nil && os.SameFile(info, f.stamp) && info.ModTime().Equal(f.stamp.ModTime()) && info.Size() == f.stamp.Size() {
		return nil
	}
	data, err := regular.Read(f.name, regular.Config)
	if err != nil {
		return err
	}
	var c content
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("%s is not a file of tokens: %w", f.name, err)
	}
	f.tokens, f.stamp, f.exists = c.Tokens, info, true
	return nil
}

// write replaces the file atomically. A new file can be read only by its owner. An existing file keeps its permissions, which may
// be needed for a server in a container.
func (f *File) write(tokens []Token) error {
	data, err := json.MarshalIndent(content{tokens}, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.name), ".tokens-*") // created with mode 0600
	if err != nil {
		return err
	}
	if before, missing := os.Stat(f.name); missing == nil {
		err = tmp.Chmod(before.Mode().Perm())
	}
	if err == nil {
		_, err = tmp.Write(append(data, '\n'))
	}
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), f.name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	f.tokens, f.exists = tokens, true
	f.stamp, err = os.Stat(f.name)
	return err
}

// Create adds a token to the file and returns its secret, which is not stored anywhere.
func (f *File) Create(t Token, now time.Time) (secret string, err error) {
	if err := t.check(); err != nil {
		return "", err
	}
	secret = Secret()
	t.Digest, t.Created = digest(secret), now.UTC().Truncate(time.Second)
	return secret, f.change(func(tokens []Token) ([]Token, error) {
		if slices.ContainsFunc(tokens, func(o Token) bool { return o.Name == t.Name }) {
			return nil, fmt.Errorf("token %q already exists: revoke it, or choose another name", t.Name)
		}
		return append(tokens, t), nil
	})
}

// Secret returns a new random secret for a token.
func Secret() string { return Prefix + rand.Text() + rand.Text() }

// Revoke removes a token.
func (f *File) Revoke(name string) error {
	return f.change(func(tokens []Token) ([]Token, error) {
		kept := slices.DeleteFunc(slices.Clone(tokens), func(t Token) bool { return t.Name == name })
		if len(kept) == len(tokens) {
			return nil, fmt.Errorf("no token %q: the command token list lists them", name)
		}
		return kept, nil
	})
}

// change replaces the list of tokens while holding a lock against other processes.
func (f *File) change(do func([]Token) ([]Token, error)) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(f.name), 0o777); err != nil {
		return err
	}
	release, err := lock(f.name + ".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := f.read(); err != nil {
		return err
	}
	tokens, err := do(slices.Clone(f.tokens))
	if err != nil {
		return err
	}
	return f.write(tokens)
}

// List returns the tokens in order of creation.
func (f *File) List() ([]Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.read()
	return slices.Clone(f.tokens), err
}

// Find returns the token with the given secret. It returns false if the secret is unknown, revoked or expired. The secret is
// compared with every token in constant time.
func (f *File) Find(secret string, now time.Time) (found Token, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.look(now); err != nil {
		return found, false, err
	}
	d := []byte(digest(secret))
	for _, t := range f.tokens {
		if subtle.ConstantTimeCompare(d, []byte(t.Digest)) == 1 && (t.Expires.IsZero() || now.Before(t.Expires)) {
			found, ok = t, true
		}
	}
	return found, ok, nil
}

// Exists reports whether the file exists. The file exists once a token has been created, and remains when the last token is
// revoked, so that then nobody is admitted.
func (f *File) Exists(now time.Time) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.look(now)
	return f.exists, err
}

// Name returns the name of the file.
func (f *File) Name() string { return f.name }

// look reads the file again if it has changed. It checks for changes at most once a second.
func (f *File) look(now time.Time) error {
	if now.Sub(f.looked).Abs() < time.Second {
		return nil
	}
	err := f.read()
	if err == nil {
		f.looked = now
	}
	return err
}

// digest returns the digest of a secret. It needs no salt and no key stretching, because a secret has 260 random bits.
func digest(secret string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(secret))) }

// lock acquires the lock of the lock file, which it creates if necessary, and returns a function that releases the lock. On
// systems without file locks, another file represents the lock as long as it exists.
func lock(name string) (release func() error, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	switch err = flock.Lock(f); {
	case err == nil:
		return f.Close, nil
	case errors.Is(err, errors.ErrUnsupported):
		if err = f.Close(); err == nil {
			return create(name + ".held")
		}
		return nil, err
	}
	return nil, errors.Join(err, f.Close())
}

// create creates a file that represents a lock, and returns a function that removes it. As long as the file exists, create waits,
// for 10 s at most.
func create(name string) (release func() error, err error) {
	const most = 10 * time.Second
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		switch {
		case err == nil:
			return func() error { return errors.Join(f.Close(), os.Remove(name)) }, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		case time.Since(start) > most:
			return nil, fmt.Errorf("another command has locked %s: remove the file if none is running", name)
		}
	}
}
