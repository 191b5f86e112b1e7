package kinds

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/regular"
	"github.com/stonelayer/stone/llm"
)

// A Secret names the place in which a secret is stored. Exactly one of its fields is set. The secret is read again each time it
// is used.
type Secret struct {
	Env  string // environment variable that contains the secret
	File string // file that contains the secret on one line
}

// Place returns a human-readable description of the place in which the secret is stored.
func (s Secret) Place() string {
	if s.File != "" {
		return "the file " + Shown(s.File)
	}
	return "$" + s.Env
}

// Read returns the secret. If it cannot be read, the error names the place in which it should be stored.
func (s Secret) Read() (llm.Secret, error) {
	if s.File == "" {
		value := os.Getenv(s.Env)
		if value == "" {
			return "", fmt.Errorf("the environment variable %s is not set", s.Env)
		}
		return llm.Secret(value), nil
	}
	data, err := regular.Read(s.File, regular.Config)
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(data))
	if value == "" {
		return "", fmt.Errorf("%s is empty", s.File)
	}
	return llm.Secret(value), nil
}

// Secret reads a field that says where a secret is stored. If it contains anything else, which may be the secret itself, the fault
// does not show it.
func (r *Reader) Secret(m *form.Map, key string) (s Secret) {
	if v, ok := m.Field(key); ok {
		s = r.secretValue(v)
	}
	return s
}

func (r *Reader) secretValue(v form.Value) (s Secret) {
	if v.EDN().Kind() != edn.KindMap {
		v.Fault(form.Invalid, "expected the place of the secret, not the secret itself: %s", NoSecret)
		return s
	}
	v.Map(func(m *form.Map) {
		SomeText(m, "env", &s.Env)
		r.Path(m, "file", &s.File)
		if _, hasEnv := m.Field("env"); hasEnv == (s.File != "") {
			m.Fault(form.Invalid, "expected one of env and file")
			s = Secret{}
		}
	})
	if s != (Secret{}) {
		r.Secrets = append(r.Secrets, s)
		r.Reach(v, "uses the key in", s.Place())
	}
	return s
}

// A Value is the value of an environment variable or a header, either in plain text or as a Secret.
type Value struct {
	Text   string
	Secret Secret
}

// Values reads a field as a map from names to values. If a name looks like the name of a secret, its value must not be plain text.
func (r *Reader) Values(m *form.Map, key string) map[string]Value {
	all := map[string]Value{}
	m.At(key).Entries(func(name string, v form.Value) {
		var one Value
		if v.EDN().Kind() == edn.KindString && !redact.Secretive(name) {
			v.Text(&one.Text)
		} else {
			one.Secret = r.secretValue(v)
		}
		all[name] = one
	})
	return all
}

// Open returns the values as strings. It reads all secrets.
func Open(values map[string]Value) (map[string]llm.Secret, error) {
	out := make(map[string]llm.Secret, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		out[name] = llm.Secret(v.Text)
		if v.Secret != (Secret{}) {
			var err error
			if out[name], err = v.Secret.Read(); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return out, nil
}
