package powerloss

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash returns the files that are left if the power fails during operation n, counted from 0, and the notes added by then. Chance
// determines which data is left of the data that was not synced.
func (d *Disk) Crash(n int, chance *rand.Rand) (files map[string][]byte, notes []any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := medium{files: map[*inode]*surface{}, now: map[string]*inode{}}
	for i, e := range d.log {
		switch {
		case e.op == note:
			notes = append(notes, e.note)
			continue
		case i < d.start:
		case n < 0:
			return m.left(chance), notes
		default:
			n--
		}
		if n < 0 && (e.op == syncFile || e.op == syncFolder) {
			break // the operation does not finish
		}
		m.do(e)
	}
	return m.left(chance), notes
}

// medium is the state of a disk after some operations: the synced data, and the data that is not synced yet.
type medium struct {
	files     map[*inode]*surface
	safe, now map[string]*inode
}

type surface struct {
	safe    []byte
	pending []event
}

func (m *medium) do(e event) {
	switch e.op {
	case create:
		m.files[e.file] = new(surface)
		m.now[e.name] = e.file
	case remove:
		delete(m.now, e.name)
	case write, truncate:
		s := m.files[e.file]
		s.pending = append(s.pending, e)
	case syncFile:
		s := m.files[e.file]
		for _, p := range s.pending {
			s.keep(p)
		}
		s.pending = nil
	case syncFolder:
		m.safe = maps.Clone(m.now)
	}
}

func (s *surface) keep(e event) {
	if e.op == truncate {
		s.safe = resize(s.safe, e.at)
	} else {
		s.safe = put(s.safe, e.data, e.at)
	}
}

// left returns the files that are left, as determined by chance. The operations that are kept are applied in their original order.
// A different order would not lead to other results, because each piece of a file is left either as one of the operations wrote
// it, or as it was before.
func (m *medium) left(chance *rand.Rand) map[string][]byte {
	names := maps.Clone(m.now)
	maps.Copy(names, m.safe)
	left := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(names)) { // sorted, so that the seed determines the result
		f := [...]*inode{m.safe[name], m.now[name]}[chance.IntN(2)]
		if f == nil {
			continue
		}
		s := &surface{safe: slices.Clone(m.files[f].safe)}
		fates := fatesOf(chance)
		for i, e := range m.files[f].pending {
			s.suffer(e, fates(i == len(m.files[f].pending)-1), chance)
		}
		left[name] = s.safe
	}
	return left
}

type fate int

const (
	kept fate = iota
	dropped
	torn
)

// fatesOf chooses a kind of disk: one that has written nothing, one that has torn only its last write, or one that has written at
// random.
func fatesOf(chance *rand.Rand) func(last bool) fate {
	switch chance.IntN(4) {
	case 0:
		return func(bool) fate { return dropped }
	case 1:
		return func(last bool) fate {
			if last {
				return torn
			}
			return kept
		}
	default:
		return func(bool) fate { return fate(chance.IntN(3)) }
	}
}

// suffer applies the fate of an operation to a file.
func (s *surface) suffer(e event, what fate, chance *rand.Rand) {
	switch {
	case what == kept, what == torn && e.op == truncate:
		s.keep(e)
	case what == torn:
		for at := 0; at < len(e.data); {
			end := at + 1 + chance.IntN(len(e.data)-at)
			if chance.IntN(2) == 0 {
				s.keep(event{op: write, data: e.data[at:end], at: e.at + int64(at)})
			}
			at = end
		}
	}
}
