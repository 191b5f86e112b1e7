package config

import (
	"fmt"
	"os"
	"strings"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/llm"
)

// A Secret says where a secret is kept: exactly one of its fields is set. It is
// read each time when it is needed.
type Secret struct {
	Env  string // the variable that holds it
	File string // the file that holds it, in one line
}

// Read returns the secret. The error says where it was looked for.
func (s Secret) Read() (llm.Secret, error) {
	if s.File == "" {
		value := os.Getenv(s.Env)
		if value == "" {
			return "", fmt.Errorf("the environment variable %s is not set", s.Env)
		}
		return llm.Secret(value), nil
	}
	data, err := os.ReadFile(s.File)
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(data))
	if value == "" {
		return "", fmt.Errorf("%s is empty", s.File)
	}
	return llm.Secret(value), nil
}

// secret reads a field that says where a secret is kept. What it says of anything
// else does not show it.
func (r *reader) secret(m *form.Map, key string) (s Secret) {
	if v, ok := m.Field(key); ok {
		s = r.secretValue(v)
	}
	return s
}

func (r *reader) secretValue(v form.Value) (s Secret) {
	if v.EDN().Kind() != edn.KindMap {
		v.Fault(form.Invalid, "expected where the secret is, never itself: %s", noSecret)
		return s
	}
	v.Map(func(m *form.Map) {
		someText(m, "env", &s.Env)
		r.path(m, "file", &s.File)
		if _, hasEnv := m.Field("env"); hasEnv == (s.File != "") {
			m.Fault(form.Invalid, "expected one of env and file")
			s = Secret{}
		}
	})
	if s != (Secret{}) {
		r.secrets = append(r.secrets, s)
	}
	return s
}
