package marks

import (
	"context"
	"encoding/json"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/marked"
)

// A place holds the marks that a body needs while it is executed.
type place struct {
	*policy
	reads map[stone.Ashlar]set // marks of the text that each leaf below the body reads
	types map[string]set       // marks that nodes of each type may have
	now   *set                 // marks of the text with which the body works, if they are declared
	given string               // type of the node in which the body passes this text to a pipeline
}

func placeIn(ctx context.Context) *place {
	pl, _ := marked.In(ctx).(*place)
	return pl
}

// here returns the marks of the text that the body of ctx works with.
func (pl *place) here(ctx context.Context) set {
	if pl.now != nil {
		return *pl.now
	}
	if s, known := pl.reads[stone.In(ctx).Ashlar()]; known {
		return s
	}
	return pl.all()
}

// with returns a context in which the body works with text that has exactly these marks.
func (pl *place) with(ctx context.Context, s set) context.Context {
	at := *pl
	at.now = &s
	return marked.At(ctx, &at)
}

// Enter implements stone.Policy.
func (p Policy) Enter(ctx context.Context, a stone.Ashlar, g stone.Given) (context.Context, stone.Findings) {
	w := p.numbered().walk(ctx, a, g)
	return marked.At(ctx, &place{policy: w.policy, reads: w.reads, types: w.types}), append(p.mistakes(), w.found...)
}

// walk walks the pipeline that a run, or the body of ctx, executes.
func (p *policy) walk(ctx context.Context, a stone.Ashlar, g stone.Given) *walker {
	w := newWalker(p)
	if up := placeIn(ctx); up != nil {
		w.within(ctx, up, a)
	}
	for _, name := range g.Types() {
		if _, known := w.near[name]; !known {
			w.write(name, w.typed(name)|w.base, "the input "+name)
		}
	}
	w.visit(a, pathOf("", a, 1))
	return w
}

// Check implements marked.Place.
func (pl *place) Check(ctx context.Context, a stone.Ashlar, g stone.Given) stone.Findings {
	return pl.walk(ctx, a, g).found
}

// Narrow implements stone.Policy.
func (p Policy) Narrow(ctx context.Context, granted []string) []string {
	if pl := placeIn(ctx); pl != nil {
		return grants.Narrow(granted, pl.may(pl.here(ctx)))
	}
	return granted
}

// Brought implements marked.Place.
func (pl *place) Brought(name string, effects []string, p stone.Ashlar) set {
	switch {
	case !p.IsZero():
		return pl.from(name, effects) | pl.sources(p)
	case effects == nil:
		return pl.all()
	}
	return pl.from(name, effects)
}

// With implements marked.Place.
func (pl *place) With(ctx context.Context, s set) context.Context {
	return pl.with(ctx, pl.here(ctx)|s)
}

// Admit implements marked.Place.
func (pl *place) Admit(ctx context.Context, name string, effects []string, arguments json.RawMessage, p stone.Ashlar, in string) (within context.Context, refusal string, asks bool) {
	at := *pl
	at.given = in
	pl = &at
	s := pl.here(ctx)
	within = pl.with(ctx, s)
	if s == 0 {
		return within, "", false
	}
	bad, why := pl.forbids(s, effects), ""
	switch {
	case !p.IsZero():
		w := newWalker(pl.policy)
		w.within(ctx, pl, p)
		w.visit(p, pathOf("", p, 1))
		if bad = 0; w.found.Err() != nil {
			bad, why = s, w.found.Errors()[0].Message
		}
	case effects == nil:
		bad, why = s, name+" does not declare its effects"
	default:
		why = name + " needs " + list(grants.Missing(effects, append([]string{}, pl.may(bad)...)))
	}
	if bad == 0 {
		return within, "", false
	}
	within = pl.with(ctx, s&^bad)
	if bad&^pl.lifted(byList) == 0 && closedSet(arguments) {
		return within, "", false
	}
	return within, "the conversation has text with the mark " + list(pl.named(bad)) + ", which may not reach it: " + why, bad&^pl.lifted(byPerson) == 0
}
