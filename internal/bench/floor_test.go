package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
)

// A ledger is the record of a run in bare Go.
type ledger struct {
	buf     []byte
	entries []entry
}

type entry struct {
	id      [sha256.Size]byte
	content string
}

// A scribe writes values of one type into a ledger and reads them back.
type scribe[T any] struct {
	name string
	enc  *canon.Encoder
}

func newScribe[T any](name string) (scribe[T], error) {
	enc, err := canon.For(reflect.TypeFor[T]())
	return scribe[T]{name, enc}, err
}

// write adds v under a parent, or without one if parent is negative, and returns its
// place.
func (s scribe[T]) write(l *ledger, v *T, parent int) (int, error) {
	const open = `{"content":`
	buf, err := s.enc.Append(append(l.buf[:0], open...), unsafe.Pointer(v))
	if err != nil {
		return 0, err
	}
	content := string(buf[len(open):])
	buf = append(buf, `,"parents":[`...)
	if parent >= 0 {
		buf = append(buf, '"')
		buf = hex.AppendEncode(buf, l.entries[parent].id[:])
		buf = append(buf, '"')
	}
	buf = append(buf, `],"type":"`...)
	buf = append(buf, s.name...)
	l.buf = append(buf, `"}`...)
	l.entries = append(l.entries, entry{sha256.Sum256(l.buf), content})
	return len(l.entries) - 1, nil
}

// read returns the value at a place. A flat one needs no reading: the previous step
// passes it on.
func (s scribe[T]) read(l *ledger, at int, written T) (T, error) {
	if s.enc.Flat() {
		return written, nil
	}
	var v T
	err := json.Unmarshal([]byte(l.entries[at].content), &v)
	return v, err
}

func floorSequence[T content[T]](steps int, first T) (func() (T, error), error) {
	s, err := newScribe[T]("doc")
	return func() (v T, err error) {
		var l ledger
		v, at := first, -1
		for range steps {
			if at >= 0 {
				if v, err = s.read(&l, at, v); err != nil {
					return v, err
				}
			}
			v = v.next()
			if at, err = s.write(&l, &v, at); err != nil {
				return v, err
			}
		}
		return v, nil
	}, err
}

func floorFanOut(lanes int) (func() (int, error), error) {
	batches, err := newScribe[batch]("batch")
	if err != nil {
		return nil, err
	}
	items, err := newScribe[item]("item")
	if err != nil {
		return nil, err
	}
	results, err := newScribe[result]("result")
	return func() (int, error) {
		var l ledger
		from := batch{Lanes: lanes}
		root, err := batches.write(&l, &from, -1)
		if err != nil {
			return 0, err
		}
		for _, it := range from.items() {
			marker, err := items.write(&l, &it, root)
			if err != nil {
				return 0, err
			}
			r := it.work()
			if _, err := results.write(&l, &r, marker); err != nil {
				return 0, err
			}
		}
		return (len(l.entries) - 1) / 2, nil
	}, err
}

// TestFloorIsTheRecord checks that the floor's ids equal the ids of Stone's nodes.
func TestFloorIsTheRecord(t *testing.T) {
	s, err := newScribe[nested]("doc")
	if err != nil {
		t.Fatal(err)
	}
	var l ledger
	var d dag.DAG
	typ := dag.NewType[nested]("doc")
	v, at := aNest, -1
	for i := range 3 {
		v = v.next()
		if at, err = s.write(&l, &v, at); err != nil {
			t.Fatal(err)
		}
		if d, err = typ.Append(d, v); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprintf("%x", l.entries[at].id), d.Latest().ID().String(); got != want {
			t.Errorf("node %d: the floor has id %s, Stone %s", i, got, want)
		}
	}
}
