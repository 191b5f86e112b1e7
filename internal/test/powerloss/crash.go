package powerloss

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash returns the files that are left if the power fails during operation n, counted
// from 0, and the notes taken by then. Chance determines which data that was not synced
// is left.
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
			break // it does not finish
		}
		m.do(e)
	}
	return m.left(chance), notes
}

// medium is the effect of the operations on a disk: synced data, and data that is not
// synced yet.
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

// left returns the files that chance leaves. Kept operations are applied in their order:
// since each piece of a file is left as one of them made it, or as it was before, another
// order would lead to nothing new.
func (m *medium) left(chance *rand.Rand) map[string][]byte {
	names := maps.Clone(m.now)
	maps.Copy(names, m.safe)
	left := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(names)) { // a seed determines everything
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

// fatesOf chooses a kind of disk: one that wrote nothing, one that tore only its last
// write, or one that wrote at random.
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
