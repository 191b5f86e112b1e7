package pdf

import (
	"fmt"
	"math"

	"github.com/ledongthuc/pdf"
)

// A letter is a letter of a page, with its position along its line and across the lines, whatever the direction of the text.
type letter struct {
	text          string
	along, across float64
	width, size   float64
}

// A matrix maps points: x' = a·x + c·y + e, y' = b·x + d·y + f.
type matrix struct{ a, b, c, d, e, f float64 }

var same = matrix{a: 1, d: 1}

// times returns the matrix that applies m and then n.
func (m matrix) times(n matrix) matrix {
	return matrix{m.a*n.a + m.b*n.c, m.a*n.b + m.b*n.d, m.c*n.a + m.d*n.c, m.c*n.b + m.d*n.d, m.e*n.a + m.f*n.c + n.e, m.e*n.b + m.f*n.d + n.f}
}

// state is the graphics state that the operator q saves and Q restores.
type state struct {
	page                      matrix // matrix of the page or form
	font                      *pdf.Font
	size, spacing, scale      float64
	leading, rise, wordSpaces float64
}

// Limits on the forms within a page. They are needed because a form can contain itself, and each form can contain the next one
// twice.
const (
	maxForms   = 10_000
	deepestUse = 16
)

// A writing collects the letters of a page and the forms in it. Stamped, merged or imposed contents are in forms.
type writing struct {
	*allowance
	ofPage  int64 // number of bytes to which its streams may still expand
	ops     int
	letters []letter
	forms   int
}

// page reads the letters of a page. If the page is damaged, the letters after the damage are missing.
func (w *writing) page(p pdf.Page) (err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case tooLarge:
			err = cause
		default:
			err = fmt.Errorf("damaged PDF: %v", cause)
		}
	}()
	if contents := p.V.Key("Contents"); !contents.IsNull() {
		w.stream(contents, p.Resources(), state{page: same, scale: 1}, 0)
	}
	return nil
}

// stream reads the content streams of a page or form.
func (w *writing) stream(contents, resources pdf.Value, s state, depth int) {
	fonts := map[string]*pdf.Font{}
	var kept []state
	text, line := same, same
	move := func(x, y float64) {
		line = matrix{1, 0, 0, 1, x, y}.times(line)
		text = line
	}
	w.take(contents)
	pdf.Interpret(contents, func(stack *pdf.Stack, op string) {
		w.tick()
		args := make([]pdf.Value, stack.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stack.Pop()
		}
		number := func(i int) float64 { // a missing number is 0
			if i < len(args) {
				return args[i].Float64()
			}
			return 0
		}
		last := func() pdf.Value {
			if len(args) == 0 {
				return pdf.Value{}
			}
			return args[len(args)-1]
		}
		whole := func() matrix {
			return matrix{number(0), number(1), number(2), number(3), number(4), number(5)}
		}
		switch op {
		case "q":
			if kept = append(kept, s); len(kept) > maxKept {
				panic("too many states within each other")
			}
		case "Q":
			if n := len(kept) - 1; n >= 0 { // some files have one Q too many
				s, kept = kept[n], kept[:n]
			}
		case "cm":
			s.page = whole().times(s.page)
		case "Do":
			w.form(resources.Key("XObject").Key(last().Name()), resources, s, depth)
		case "BT":
			text, line = same, same
		case "Tm":
			text, line = whole(), whole()
		case "Td":
			move(number(0), number(1))
		case "TD":
			s.leading = -number(1)
			move(number(0), number(1))
		case "T*":
			move(0, -s.leading)
		case "TL":
			s.leading = number(0)
		case "Tc":
			s.spacing = number(0)
		case "Tw":
			s.wordSpaces = number(0)
		case "Tz":
			s.scale = number(0) / 100
		case "Ts":
			s.rise = number(0)
		case "Tf":
			if len(args) == 2 {
				name := args[0].Name()
				if fonts[name] == nil {
					fonts[name] = &pdf.Font{V: resources.Key("Font").Key(name)}
					w.take(fonts[name].V.Key("ToUnicode"))
					w.take(fonts[name].V.Key("Encoding"))
				}
				s.font, s.size = fonts[name], number(1)
			}
		case "\"":
			s.wordSpaces, s.spacing = number(0), number(1)
			move(0, -s.leading)
			w.show(&s, &text, last().RawString())
		case "'":
			move(0, -s.leading)
			w.show(&s, &text, last().RawString())
		case "Tj":
			w.show(&s, &text, last().RawString())
		case "TJ":
			for i := range last().Len() {
				if v := last().Index(i); v.Kind() == pdf.String {
					w.show(&s, &text, v.RawString())
				} else {
					text = matrix{1, 0, 0, 1, -v.Float64() / 1000 * s.size * s.scale, 0}.times(text)
				}
			}
		}
	})
}

// form reads a form, which uses its own resources or its page's.
func (w *writing) form(x, around pdf.Value, s state, depth int) {
	if x.Key("Subtype").Name() != "Form" || depth == deepestUse || w.forms == maxForms {
		return
	}
	w.forms++
	if m := x.Key("Matrix"); m.Len() == 6 {
		s.page = matrix{m.Index(0).Float64(), m.Index(1).Float64(), m.Index(2).Float64(), m.Index(3).Float64(), m.Index(4).Float64(), m.Index(5).Float64()}.times(s.page)
	}
	own := x.Key("Resources")
	if own.IsNull() {
		own = around
	}
	w.stream(x, own, s, depth+1)
}

// show adds the letters of a string and advances the position past them.
func (w *writing) show(s *state, text *matrix, raw string) {
	if s.font == nil || s.font.Encoder() == nil {
		return
	}
	n := 0
	for _, r := range s.font.Encoder().Decode(raw) {
		wide, space := 0.0, 0.0
		if n < len(raw) {
			if wide = s.font.Width(int(raw[n])) / 1000; raw[n] == ' ' {
				space = s.wordSpaces
			}
		}
		n++
		at := matrix{s.size * s.scale, 0, 0, s.size, 0, s.rise}.times(*text).times(s.page)
		size := math.Hypot(at.a, at.b)
		x, y := 1.0, 0.0 // direction of the text
		if size > 0 {
			x, y = at.a/size, at.b/size
		}
		if len(w.letters) == maxLetters {
			panic(fmt.Sprintf("a page of more than %d letters", maxLetters))
		}
		w.letters = append(w.letters, letter{string(r), at.e*x + at.f*y, at.f*x - at.e*y, wide * size, size})
		*text = matrix{1, 0, 0, 1, (wide*s.size + s.spacing + space) * s.scale, 0}.times(*text)
	}
}
