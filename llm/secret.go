package llm

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const redacted = "[redacted]"

// Secret is a string that prints, logs and marshals as "[redacted]", or as "" if it is empty. string(s) is the value. Keep a
// Secret only in exported fields, because package fmt does not call the methods of values in unexported fields.
type Secret string

// NoKey, as the Key in a model's Config, means that no key is sent, not even one from the environment.
const NoKey Secret = "\x00none"

// A KeyFunc returns the key for a provider and the time at which the key expires. The zero time means that the key is valid until
// the provider rejects it. A model uses the key until shortly before it expires, and then calls the function again. It also calls
// it once after an answer with status 401. A model calls the function from one goroutine at a time, with the context of the
// request that needs the key.
type KeyFunc func(ctx context.Context) (key Secret, expires time.Time, err error)

// String returns the redacted form.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString returns the redacted form for %#v.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format writes the redacted form for every verb.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'v' && f.Flag('#') {
		fmt.Fprint(f, s.GoString())
		return
	}
	fmt.Fprint(f, s.String())
}

// MarshalText returns the redacted form, for JSON and other encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns the redacted form for log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
