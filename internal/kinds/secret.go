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

// A Secret names the place of a secret: exactly one of its fields is set. The secret is read again for each use.
type Secret struct {
	Env  string // the variable with the secret
	File string // the file with the secret, on one line
}

// Place returns where the secret is, for people.
func (s Secret) Place() string {
	if s.File != "" {
		return "the file " + Shown(s.File)
	}
	return "$" + s.Env
}

// Read returns the secret. The error names the place.
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

// Secret reads a field that names the place of a secret. Its faults do not show any other
// value.
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

// A Value is the value of a variable or a header: in plain text, or a secret.
type Value struct {
	Text   string
	Secret Secret
}

// Values reads a field as values by their names. A value must not be plain text if its
// name looks like the name of a secret.
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

// Open reads the secrets among the values.
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
