package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// A drawing shows the pipeline of a run, with the number of steps at each place.
type drawing struct {
	Width, Height int
	Boxes         []box
	Arrows        []arrow
	rescued       bool // the run has a result: only the failed parts are marked, not the parts that contain them
}

// A box is an ashlar: a leaf, or a frame around its children.
type box struct {
	X, Y, W, H int
	Name       string
	Note       string // form of the ashlar
	Counts     string // number of its steps in each state
	State      string
	URL        string
	Frame      bool
}

// An arrow leads from one box to the next.
type arrow struct{ From, To, Y int }

// A place is a part of the pipeline with the steps that ran there.
type place struct {
	journal.Part
	name             string
	below            []*place
	done, failed, un int
	first            string // path of the first step
	steps            int    // number of steps at the place itself
	usage            budget.Usage
	visits           int // number of rounds or lanes
}

// maxPlaces is the maximum number of places in a drawing. If a pipeline is larger, only its upper levels are drawn.
const maxPlaces = 120

// draw lays out the pipeline of a run from left to right. It returns nil if the run has no recorded pipeline.
func draw(info journal.RunInfo, at []journal.Place) *drawing {
	parts := slices.DeleteFunc(slices.Clone(info.Shape), func(p journal.Part) bool { return p.Form == "guard" })
	for depth := 64; len(parts) > maxPlaces && depth > 0; depth-- {
		var upper []journal.Part
		for _, p := range parts {
			if strings.Count(p.Path, "/") < depth {
				upper = append(upper, p)
			}
		}
		parts = upper
	}
	if len(parts) == 0 || len(parts) > maxPlaces {
		return nil
	}
	places := map[string]*place{}
	var root *place
	for _, part := range parts {
		p := &place{Part: part, name: address.Unescape(address.Last(part.Path))}
		places[part.Path] = p
		if up := places[address.Parent(part.Path)]; up != nil {
			up.below = append(up.below, p)
		} else if root == nil {
			root = p
		}
	}
	for _, s := range at {
		if p := places[s.Path]; p != nil {
			p.visits = s.Visits
		}
		counted := true
		for at, here := s.Path, true; at != ""; at, here = address.Parent(at), false {
			if p := places[at]; p != nil {
				counted = counted && (here || len(p.below) > 0) // an agent's turns are not steps of the pipeline
				p.add(s, here, counted)
			}
		}
	}
	d := &drawing{rescued: info.State == journal.Done}
	w, h := d.lay(root, info.ID, 1, 1)
	d.Width, d.Height = w+2, h+2
	return d
}

// add counts a step that ran at the place itself or below it.
func (p *place) add(s journal.Place, here, counted bool) {
	p.usage = p.usage.Add(s.Usage)
	if here {
		p.steps += s.Open + s.Recorded
	}
	p.first = cmp.Or(p.first, s.First)
	if counted {
		p.un, p.failed, p.done = p.un+s.Open, p.failed+s.Failed, p.done+s.Recorded-s.Failed
	}
}

const (
	charWidth = 8 // character width in a drawing
	boxHeight = 38
	gapX      = 26
	gapY      = 8
	frameTop  = 22
	frameSide = 9
)

// lay draws a place with its upper left corner at x, y, and returns its size.
func (d *drawing) lay(p *place, run string, x, y int) (w, h int) {
	b := box{X: x, Y: y, Name: p.name, Counts: p.counts(), State: p.state()}
	if p.steps == 1 {
		b.URL = stepURL(run, p.first)
	}
	if run == "" {
		b.Counts = p.detail()
	}
	if len(p.below) == 0 {
		b.W, b.H = max(utf8.RuneCountInString(b.Name), utf8.RuneCountInString(b.Counts), 4)*charWidth+16, boxHeight
		d.Boxes = append(d.Boxes, b)
		return b.W, b.H
	}
	b.Frame, b.Note = true, p.note()
	if d.rescued && b.State == "failed" {
		b.State = "partly"
	}
	at := len(d.Boxes)
	d.Boxes = append(d.Boxes, b)
	x0, y0 := x+frameSide, y+frameTop
	side := p.Form == "parallel" || p.Form == "match" || p.Form == "rescue" || p.Form == "leaf"
	right, bottom := x0, y0
	for i, c := range p.below {
		cw, ch := d.lay(c, run, x0, y0)
		right, bottom = max(right, x0+cw), max(bottom, y0+ch)
		if side {
			y0 = bottom + gapY
			continue
		}
		if i+1 < len(p.below) {
			d.Arrows = append(d.Arrows, arrow{x0 + cw + 3, x0 + cw + gapX - 4, y0 + boxHeight/2})
		}
		x0 = right + gapX
	}
	title := b.Name + "  " + b.Note + "  " + b.Counts
	b.W = max(right-x+frameSide, utf8.RuneCountInString(title)*charWidth+2*frameSide)
	b.H = bottom - y + frameSide
	d.Boxes[at] = b
	return b.W, b.H
}

// note returns the note of a frame.
func (p *place) note() string {
	switch p.Form {
	case "seq", "leaf":
		return ""
	case "loop":
		if p.visits == 0 {
			return fmt.Sprintf("loop, at most %d rounds", p.Rounds)
		}
		return fmt.Sprintf("loop, %d of at most %d rounds", p.visits, p.Rounds)
	case "map":
		if p.visits > 0 {
			return "map, " + plural(p.visits, "lane")
		}
	}
	return p.Form
}

// detail describes a part that has not run: its model and tools, its intent, its effects, or else the type that it produces.
func (p *place) detail() string {
	var s struct {
		Model  struct{ Model string } `json:"model"`
		Use    []struct{ Tool any }   `json:"use"`
		Intent string                 `json:"intent"`
		Cap    string                 `json:"cap"`
		Does   []string               `json:"effects"`
	}
	_ = json.Unmarshal(p.Settings, &s) // parts of other kinds have no such settings
	tools := 0
	for _, u := range s.Use {
		if u.Tool != nil {
			tools++
		}
	}
	out := []string{cmp.Or(s.Intent, s.Cap, s.Model.Model, p.Type)}
	if tools > 0 {
		out = append(out, plural(tools, "tool"))
	}
	if len(p.below) > 0 {
		out[0] = ""
	}
	return strings.TrimSpace(strings.Join(append(out, s.Does...), "  "))
}

func (p *place) counts() string {
	var out []string
	for _, c := range []struct {
		n    int
		mark string
	}{{p.done, view.Mark("done")}, {p.failed, view.Mark("failed")}, {p.un, view.Mark("open")}} {
		switch {
		case c.n == 1 && p.done+p.failed+p.un == 1:
			out = append(out, c.mark)
		case c.n > 0:
			out = append(out, c.mark+" "+count(c.n))
		}
	}
	if usd := money.USD(p.usage.USD, p.usage.Estimated); usd != "" {
		out = append(out, usd+" USD")
	}
	return strings.Join(out, "  ")
}

func (p *place) state() string {
	switch {
	case p.failed > 0:
		return "failed"
	case p.un > 0:
		return "open"
	case p.done > 0:
		return "done"
	}
	return "none"
}
