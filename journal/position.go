package journal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/terms"
	texts "github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/step"
)

// A resumed run is replayed by position: the record of a step applies to whatever step the program now has at the same path. This
// file reports differences between record and program.

// prompts returns a notice for each part whose prompt differs between before and now.
func prompts(before, now []Part) (all []event.Notice) {
	old := index(before)
	for _, p := range now {
		if was, known := old[p.Path]; known && was.Prompt != p.Prompt {
			all = append(all, event.Notice{Code: terms.PromptChanged, Path: p.Path, Text: "the prompt changed since the run started: what has an answer keeps it, and a conversation that began continues with the old prompt\n" + texts.Changed(was.Prompt, p.Prompt)})
		}
	}
	return all
}

// keepPrompts replaces each prompt in now with the prompt of the same part in before, with which the run started.
func keepPrompts(before, now []Part) {
	old := index(before)
	for i, p := range now {
		if was, known := old[p.Path]; known {
			now[i].Prompt = was.Prompt
		}
	}
}

// cleanNotices returns copies of the notices without secrets.
func (r *runner) cleanNotices(all []event.Notice) []event.Notice {
	all = slices.Clone(all)
	for i := range all {
		all[i].Text = r.secrets.Clean(all[i].Text)
	}
	return all
}

// renew changes the digest in key if the step is repeated, so that the step's old record is not found.
func (r *runner) renew(key *step.Key) {
	if n := r.times(key.Path); n > 0 {
		key.Digest = sha256.Sum256(binary.AppendUvarint(key.Digest[:], uint64(n)))
	}
}

// times returns how many times the step at path has been repeated (see Options.Again).
func (r *runner) times(path string) (n int) {
	for _, a := range r.again {
		if path == a.Path || address.Within(path, a.Path) {
			n++
		}
	}
	return n
}

// renewed reports whether a record made at the given time is older than the latest repetition of any step. If so, the new node of
// the repeated step may be the reason why an input differs.
func (r *runner) renewed(made time.Time) bool {
	n := len(r.again)
	return n > 0 && !made.After(r.again[n-1].Time)
}

// left contains recorded steps of unfinished bodies. A resumed run removes each step that it uses.
type left struct {
	mu     sync.Mutex
	loaded bool
	of     map[string]string   // path of each step's leaf, by the path of the step
	under  map[string][]string // paths of the steps in each leaf, by the path of the leaf
}

// load fills l from steps, which earlier processes have recorded.
func (l *left) load(steps []Step) {
	l.loaded, l.of, l.under = true, map[string]string{}, map[string][]string{}
	open := map[string]bool{} // leaves without a result
	done := map[string]bool{} // steps with a result; the steps below them are not needed
	for _, s := range steps {
		switch {
		case s.Kind == "leaf" && !s.Recorded:
			open[s.Path] = true
		case s.Recorded && s.Kind != "decision" && s.Kind != step.Value:
			done[s.Path] = true
		}
	}
	for _, s := range steps {
		if s.Kind != "step" || !s.Recorded || len(open) == 0 {
			continue
		}
		for up := address.Parent(s.Path); up != "" && !done[up]; up = address.Parent(up) {
			if open[up] {
				l.of[s.Path], l.under[up] = up, append(l.under[up], s.Path)
				break
			}
		}
	}
}

// earlier calls use with r.left while holding its lock. The first call loads r.left. It must happen before this process records a
// step within a body.
func (r *runner) earlier(ctx context.Context, use func(*left)) error {
	r.left.mu.Lock()
	defer r.left.mu.Unlock()
	if !r.left.loaded {
		steps, err := r.journal.Steps(ctx, r.cfg.RunID)
		if err != nil {
			return err
		}
		r.left.load(steps)
	}
	use(&r.left)
	return nil
}

// tellUnused sends a notice if earlier processes have recorded results within the leaf at path that its resumed body has not used.
func (r *recorder) tellUnused(ctx context.Context, path string) error {
	if !r.resumed || len(r.again) > 0 {
		return nil
	}
	var unused []string
	err := r.earlier(ctx, func(l *left) {
		for _, p := range l.under[path] {
			if l.of[p] != "" && !slices.Contains(unused, p) {
				unused = append(unused, p)
			}
		}
		delete(l.under, path)
	})
	if err != nil || len(unused) == 0 {
		return err
	}
	event.At(ctx).Send(event.Notice{Code: terms.UnusedRecords, Path: path, Text: texts.Unused(unused)})
	return nil
}
