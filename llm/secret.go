package llm

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const redacted = "[redacted]"

// Secret is a string that is printed, logged and marshaled as "[redacted]", or as "" if it is empty. To get the value, convert it
// with string(s). Keep a Secret only in exported fields, because package fmt does not call the methods of values in unexported
// fields.
type Secret string

// NoKey is a value for the Key of a model's Config. It means that no key is sent, not even a key from the environment.
const NoKey Secret = "\x00none"

// A KeyFunc returns the key for a provider and the time at which the key expires. The zero time means that the key is valid until
// the provider rejects it. A model uses a key until shortly before the key expires, and then calls the function again. It also
// calls the function once after a response with status 401. A model never calls the function concurrently. The context belongs to
// the request that needs the key.
type KeyFunc func(ctx context.Context) (key Secret, expires time.Time, err error)

// String returns "[redacted]", or "" for an empty Secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString returns the result of String in Go syntax, for the verb %#v.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format writes the redacted form, whatever the verb.
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
