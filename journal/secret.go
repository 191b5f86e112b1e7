package journal

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
)

// minSecret is how long a secret must be: a shorter one stands in innocent text.
const minSecret = 8

// Secret marks a value as one that must not be recorded, in the run to which ctx
// belongs, from now on; see the package comment. Outside of a run that Keep keeps
// it does nothing. A value of less than 8 bytes is an error.
func Secret(ctx context.Context, value string) error {
	s, _ := ctx.Value(secretsKey{}).(*secrets)
	if s == nil {
		return nil
	}
	return s.add(value)
}

type secretsKey struct{}

// secrets are the values that must not be recorded in a run.
type secrets struct {
	mu    sync.RWMutex
	pairs []string // of strings.NewReplacer, the longest values first
	out   *strings.Replacer
}

func newSecrets(values []string) (*secrets, error) {
	s := new(secrets)
	for _, v := range values {
		if err := s.add(v); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *secrets) add(value string) error {
	if len(value) < minSecret {
		return fmt.Errorf("a secret has %d bytes: want at least %d, a shorter one would be found in innocent text", len(value), minSecret)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.pairs, value) {
		return nil
	}
	texts, err := spellings(value)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(value))
	digest := fmt.Sprintf("sha256:%x", sum[:4])
	type pair struct{ value, digest string }
	var pairs []pair
	for _, text := range texts {
		pairs = append(pairs, pair{text, digest})
	}
	for i := 0; i < len(s.pairs); i += 2 {
		pairs = append(pairs, pair{s.pairs[i], s.pairs[i+1]})
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return len(b.value) - len(a.value) })
	s.pairs = nil
	for _, p := range pairs {
		s.pairs = append(s.pairs, p.value, p.digest)
	}
	s.out = strings.NewReplacer(s.pairs...)
	return nil
}

// spellings returns a value as it stands in a text, in JSON, and in JSON that is a
// text within JSON, by encoders that escape what HTML minds and by those that do
// not.
func spellings(value string) ([]string, error) {
	texts := []string{value}
	for from := 0; from < len(texts) && len(texts) < 7; from++ {
		plain, err := canon.Append(nil, texts[from])
		if err != nil {
			return nil, fmt.Errorf("a secret cannot be written as JSON: %w", err)
		}
		escaped, err := json.Marshal(texts[from])
		if err != nil {
			return nil, fmt.Errorf("a secret cannot be written as JSON: %w", err)
		}
		for _, quoted := range [][]byte{plain, escaped} {
			if text := string(quoted[1 : len(quoted)-1]); !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts, nil
}

func (s *secrets) replacer() *strings.Replacer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.out
}

// clean returns text without secrets.
func (s *secrets) clean(text string) string {
	if out := s.replacer(); out != nil {
		return out.Replace(text)
	}
	return text
}

// cleanRecord takes the secrets out of a record, and reports whether it had any.
func (s *secrets) cleanRecord(rec *stone.Record) (bool, error) {
	out := s.replacer()
	if out == nil {
		return false, nil
	}
	if kept := string(rec.Kept); out.Replace(kept) != kept {
		return false, errors.New("a leaf keeps nodes that hold a secret: have the steps that made them recorded, or take it out")
	}
	found := false
	clean := func(text string) string {
		cleaned := out.Replace(text)
		found = found || cleaned != text
		return cleaned
	}
	content := []byte(clean(string(rec.Content)))
	for k, v := range rec.Meta {
		rec.Meta[k] = clean(v)
	}
	if rec.Failure != nil {
		rec.Failure.Reason = clean(rec.Failure.Reason)
	}
	if !found {
		return false, nil
	}
	return true, reseal(rec, content)
}

// reseal gives a record its changed content, with the node and the sum that go
// with it.
func reseal(rec *stone.Record, content []byte) error {
	if rec.Failure == nil {
		spec := dag.Spec{Type: "value", Content: json.RawMessage(content), Meta: rec.Meta, Time: rec.Time}
		if rec.Node != nil {
			spec.Type, spec.Parents = rec.Node.Type(), rec.Node.Parents()
		}
		n, err := dag.NewNode(spec) // which makes the content canonical again
		if err != nil {
			return fmt.Errorf("a result without its secrets makes no node: %w", err)
		}
		if rec.Content = n.Content(); rec.Node != nil {
			rec.Node = n
		}
	}
	rec.Sum = rec.Seal()
	return nil
}

// refuse reports a secret in what is kept as it is: the input and the source.
func (s *secrets) refuse(d dag.DAG, source []byte) error {
	out := s.replacer()
	if out == nil {
		return nil
	}
	if text := string(source); out.Replace(text) != text {
		return errors.New("Options.Source holds a secret, which must not be recorded: have the pipeline read it from the environment")
	}
	for n := range d.Nodes() {
		if text := n.JSON(); out.Replace(text) != text {
			return fmt.Errorf("node %s of the input holds a secret, which must not be recorded: take it out", n)
		}
	}
	return nil
}
