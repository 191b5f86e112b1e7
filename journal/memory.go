package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// Memory is a Recorder that keeps its records in memory, for tests and for runs
// that are repeated within one process. Its zero value is empty and ready. It
// may serve several runs and goroutines at once; it must not be copied.
type Memory struct {
	mu     sync.Mutex
	steps  map[step][]byte // records as JSON, so that nobody can change them
	reused map[dag.ID][]byte
}

type step struct {
	run    string
	digest dag.ID
}

// Do implements [stone.Recorder].
func (m *Memory) Do(ctx context.Context, key stone.Key, work func(context.Context) (stone.Record, error)) (stone.Record, error) {
	if raw := m.find(key); raw != nil {
		return decode(raw)
	}
	rec, err := work(ctx)
	if err != nil {
		return stone.Record{}, err
	}
	raw, err := json.Marshal(rec)
	if err != nil {
		return stone.Record{}, fmt.Errorf("record of %s: %w", key.Path, err)
	}
	if first := m.keep(key, raw, rec.Failure != nil); first != nil {
		return decode(first)
	}
	return rec, nil
}

func (m *Memory) find(key stone.Key) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if raw := m.steps[step{key.Run, key.Digest}]; raw != nil {
		return raw
	}
	if key.Reuse == (dag.ID{}) {
		return nil
	}
	return m.reused[key.Reuse]
}

// keep stores a record, unless there is one already, which it returns.
func (m *Memory) keep(key stone.Key, raw []byte, failed bool) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steps == nil {
		m.steps, m.reused = map[step][]byte{}, map[dag.ID][]byte{}
	}
	at := step{key.Run, key.Digest}
	if first := m.steps[at]; first != nil {
		return first
	}
	m.steps[at] = raw
	if key.Reuse != (dag.ID{}) && !failed && m.reused[key.Reuse] == nil {
		m.reused[key.Reuse] = raw
	}
	return nil
}

func decode(raw []byte) (stone.Record, error) {
	var rec stone.Record
	if err := json.Unmarshal(raw, &rec); err != nil {
		return rec, fmt.Errorf("stored record: %w", err)
	}
	rec.Replayed = true
	return rec, nil
}
