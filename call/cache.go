package call

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/form"
)

// Cache lets a call reuse the recorded answer of an equal call in an earlier run. Equal calls have the same name, type, request
// and rules, and the same candidates in the same versions. Only accepted answers are reused, and only if they did not come from a
// returned plan or a pipeline. No capability is invoked and no check is repeated: a cached answer costs nothing and has no
// effects.
type Cache struct {
	// MaxAge is the maximum age of the answer. Nil uses the intent's rules; without rules, or with an age of zero, a capability
	// is always invoked.
	MaxAge *time.Duration `json:"-"` // "max-age-ms"
}

// MarshalJSON encodes c with the age in milliseconds.
func (c Cache) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int64{"max-age-ms": max(c.age().Milliseconds(), 0)})
}

// age returns the maximum age of a reused answer, or 0 if no answer is reused.
func (c Cache) age() time.Duration { return *cmp.Or(c.MaxAge, new(time.Duration(0))) }

func (c *Cache) read(m *form.Map) {
	m.Need("max-age-ms")
	form.Ptr(&c.MaxAge, m.At("max-age-ms").Duration)
}

// takes returns the maximum age of a cached answer, and a key that identifies the capabilities that would be invoked. Because of
// the key, an answer that was obtained with a larger grant is not reused.
func (c *caller) takes(grant []string) (key []byte, age time.Duration) {
	r := c.resolve()
	if r.cache.age() <= 0 || len(r.faults) > 0 {
		return nil, 0
	}
	key, err := namedBy(c.spec.Applicator.candidates(&c.spec, grant))
	if err != nil { // a version that is not valid text has no key
		return nil, 0
	}
	return key, r.cache.age()
}

// namedBy returns the ids and versions of candidates.
func namedBy(candidates []candidate) (JSON, error) {
	var asked [][2]string
	for _, c := range candidates {
		version := c.reason
		if c.reason == "" {
			version = c.entry.Version
		}
		asked = append(asked, [2]string{c.id, version})
	}
	return canon.Append(nil, asked)
}
