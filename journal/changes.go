package journal

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/terms"
)

// allChanges returns descriptions of all changes from the shape before to the shape now, or nil if they are equal.
func allChanges(before, now []Part) []string {
	_, all := changes(before, now, func(string) bool { return false })
	return all
}

// changes returns two lists of changes from the shape before to the shape now: done lists the changes in parts that the run has
// already reached, and ahead lists all others.
func changes(before, now []Part, reached func(path string) bool) (done, ahead []string) {
	c := &comparison{reached: reached}
	c.before, c.old = placed(before)
	c.now, c.new = placed(now)
	c.rename()
	for _, p := range c.before {
		switch to := c.called[p]; {
		case c.new[p.key] != nil || p.up != nil && c.new[p.up.key] == nil:
		case to != nil:
			c.say(c.decided(p) || c.passed(to), fmt.Sprintf("%s is now called %s", p.Path, to.Path))
		default:
			c.say(c.decided(p), p.Path+" was removed")
		}
	}
	for _, p := range c.now {
		switch was := c.old[p.key]; {
		case was != nil:
			c.compare(was, p)
		case c.was[p] != nil || p.up != nil && c.old[p.up.key] == nil:
		default:
			c.say(c.passed(p), p.Path+" was added")
		}
	}
	return c.done, c.ahead
}

// comparison compares two shapes. If only one shape has a part, the parts below it are skipped.
type comparison struct {
	before, now []*spot
	old, new    map[string]*spot
	reached     func(path string) bool
	called, was map[*spot]*spot // renamed parts: called maps old spots to new ones, was the reverse
	done, ahead []string
}

// spot is a part with its position in the tree. The key distinguishes parts in different lanes or branches, which may have the same
// path.
type spot struct {
	Part
	key   string
	up    *spot
	below []*spot
	guard *Part // nil if the part has no guard
}

func placed(parts []Part) (all []*spot, byKey map[string]*spot) {
	latest := make(map[string]*spot, len(parts))
	byKey = make(map[string]*spot, len(parts))
	var guard *Part
	for _, p := range parts {
		if p.Form == guardForm {
			guard = &p
			continue
		}
		s := &spot{Part: p, key: p.Path, up: latest[address.Parent(p.Path)], guard: guard}
		guard = nil
		if s.up != nil {
			s.key = s.up.key + "/" + address.Last(p.Path)
			s.up.below = append(s.up.below, s)
		}
		for byKey[s.key] != nil {
			s.key += "'"
		}
		latest[p.Path], byKey[s.key] = s, s
		all = append(all, s)
	}
	return all, byKey
}

// guarded returns the version of the part's guard, or "" if it has none.
func (s *spot) guarded() string {
	if s.guard == nil {
		return ""
	}
	return s.guard.Version
}

func (c *comparison) say(done bool, texts ...string) {
	if done {
		c.done = append(c.done, texts...)
	} else {
		c.ahead = append(c.ahead, texts...)
	}
}

// fixed reports whether the run has started the part, or an enclosing body that may run the part.
func (c *comparison) fixed(p *spot) bool {
	if c.reached(p.Path) {
		return true
	}
	for up := p.up; up != nil; up = up.up {
		if bodies[up.Form] && c.reached(up.Path) {
			return true
		}
	}
	return false
}

// decided reports whether the run has started or skipped a part.
func (c *comparison) decided(p *spot) bool {
	return c.fixed(p) || p.guard != nil && c.reached(p.guard.Path)
}

// bodies are the forms whose Go code decides which children run.
var bodies = map[string]bool{"leaf": true, "scoped": true}

// passed reports whether the run has already passed the place where a part was added. It has if it has started a later part, or any
// part of an enclosing form that is unordered or repeats.
func (c *comparison) passed(p *spot) bool {
	for ; p.up != nil; p = p.up {
		siblings := p.up.below
		later := siblings[slices.Index(siblings, p)+1:]
		if slices.ContainsFunc(later, func(s *spot) bool {
			was := cmp.Or(c.old[s.key], c.was[s])
			return was != nil && c.reached(was.Path)
		}) {
			return true
		}
		switch p.up.Form {
		case "seq", "flow", "match", "map", "reduce":
		default:
			if c.reached(p.up.Path) {
				return true
			}
		}
	}
	return false
}

// compare adds the changes to a part that is in both shapes. It does not compare the children.
func (c *comparison) compare(was, is *spot) {
	out := differences(was.Part, is.Part)
	if a, b := was.guarded(), is.guarded(); a != b {
		c.say(c.decided(was), fmt.Sprintf("the guard of %s changed from %s to %s", is.Path, quote(a), quote(b)))
	}
	a, b := c.kept(was.below), c.kept(is.below)
	if !slices.Equal(a, b) {
		last := len(a)
		for last > 0 && !c.reached(c.old[a[last-1]].Path) {
			last--
		}
		c.say(c.fixed(was) && !slices.Equal(a[:last], b[:last]),
			fmt.Sprintf("the steps of %s have another order: %s, it was %s", is.Path, names(is.below), names(was.below)))
	}
	changed := func(key string) bool {
		a, b := c.old[key], c.new[key]
		return a.Print != b.Print || a.guarded() != b.guarded()
	}
	if len(out) == 0 && was.Print != is.Print && slices.Equal(a, b) && len(a) == max(len(was.below), len(is.below)) && !slices.ContainsFunc(a, changed) {
		out = append(out, is.Path+" changed in its bounds")
	}
	c.say(c.fixed(was), out...)
}

// kept returns the keys of the parts that are in both shapes.
func (c *comparison) kept(parts []*spot) (keys []string) {
	for _, p := range parts {
		if c.old[p.key] != nil && c.new[p.key] != nil {
			keys = append(keys, p.key)
		}
	}
	return keys
}

func names(parts []*spot) string {
	var all []string
	for _, p := range parts {
		all = append(all, address.Last(p.Path))
	}
	return strings.Join(all, ", ")
}

// rename finds renamed parts. A part counts as renamed if exactly one new part with the same parent differs from it only in the
// name.
func (c *comparison) rename() {
	c.called, c.was = map[*spot]*spot{}, map[*spot]*spot{}
	fresh := map[*spot][]*spot{} // new parts, by their parent in the old shape
	for _, p := range c.now {
		if c.old[p.key] == nil {
			var up *spot
			if p.up != nil {
				up = c.old[p.up.key]
			}
			fresh[up] = append(fresh[up], p)
		}
	}
	for _, p := range c.before {
		if c.new[p.key] != nil {
			continue
		}
		alike := slices.DeleteFunc(slices.Clone(fresh[p.up]), func(n *spot) bool { return len(differences(p.Part, n.Part)) > 0 })
		if len(alike) == 1 {
			c.called[p], c.was[alike[0]] = alike[0], p
		}
	}
}

// changed returns the changes to a pipeline since its run started: done lists the changes in parts that the run has already
// reached, and ahead lists all others.
func changed(ctx context.Context, j Journal, before, now RunInfo) (done, ahead []string, err error) {
	if before.State == Done || len(before.Shape) == 0 || len(now.Shape) == 0 { // there is no shape if the pipeline is too large
		done = allChanges(before.Shape, now.Shape)
	} else {
		reached := map[string]bool{}
		for s, err := range j.EachStep(ctx, before.ID) {
			if err != nil {
				return nil, nil, err
			}
			for at := address.Place(s.Path); at != "" && !reached[at]; at = address.Parent(at) {
				reached[at] = true
			}
		}
		done, ahead = changes(before.Shape, now.Shape, func(path string) bool { return reached[path] })
	}
	if len(done)+len(ahead) == 0 {
		done = []string{"its fingerprint changed"}
	}
	return done, ahead, nil
}

// compare returns an error if the run cannot continue, because its pipeline or input has changed since before. Otherwise it copies
// to now the settings that a resumed run keeps.
func (r *runner) compare(ctx context.Context, before RunInfo, now *RunInfo) (err error) {
	var refused, ahead []string
	var news []event.Data
	if before.Fingerprint != now.Fingerprint && !r.opts.Force {
		if refused, ahead, err = changed(ctx, r.journal, before, *now); err != nil {
			return err
		}
		if r.opts.Refuse { // only a program with the pipeline that the run started with may continue it
			refused, ahead = append(refused, ahead...), nil
		}
	}
	if now.Input != (dag.ID{}) && now.Input != before.Input {
		refused = append(refused, "the input changed")
	}
	if len(refused) > 0 && !r.opts.Force {
		return &ChangedError{Run: before.ID, Changes: refused}
	}
	if len(ahead) > 0 {
		news = append(news, event.Notice{Code: terms.PipelineChanged, Path: now.Shape[0].Path, Text: "the pipeline changed since the run started, in what the run has not reached:\n" + strings.Join(ahead, "\n")})
	}
	if before.Revision != now.Revision {
		news = append(news, event.Custom{Name: "revision-changed", At: slog.LevelWarn, Attrs: []slog.Attr{
			slog.String("before", before.Revision), slog.String("now", now.Revision),
		}})
	}
	for _, n := range prompts(before.Shape, now.Shape) {
		news = append(news, n)
	}
	keepPrompts(before.Shape, now.Shape)
	r.news.Store(&news)
	now.Again = before.Again
	if now.Input != (dag.ID{}) && now.Input != before.Input { // with Force, the steps that read the input are repeated
		now.Again = append(now.Again, Again{Time: r.now()})
	}
	for _, path := range r.opts.Again {
		now.Again = append(now.Again, Again{path, r.now()})
	}
	r.again = now.Again
	now.Attempt = before.Attempt
	if before.State == Failed || before.State == Canceled || before.State == Done {
		now.Attempt = max(now.Attempt, 1) + 1
	}
	now.Started, now.Reuse, now.Steps, now.Usage = before.Started, before.Reuse, before.Steps, before.Usage
	now.Input, now.Account = cmp.Or(now.Input, before.Input), cmp.Or(now.Account, before.Account)
	if now.Budgets == nil {
		now.Budgets = before.Budgets
	}
	if now.Notify == nil {
		now.Notify = before.Notify
	}
	if len(now.Source) == 0 {
		now.Source = before.Source
	}
	if len(now.Labels) == 0 {
		now.Labels = before.Labels
	}
	if r.opts.Pipeline == "" {
		now.Pipeline = before.Pipeline
	}
	return nil
}
