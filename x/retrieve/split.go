package retrieve

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A unit is a part of a block that is never split, unless it is longer than a piece.
type unit struct {
	text     string
	sep      string // separator between this unit and the one before
	from, to int
	page     int
}

// maxLevel is the deepest level of a heading.
const maxLevel = 6

// split joins the blocks of each section into pieces of at most size bytes. A piece repeats the last units of the previous piece,
// up to overlap bytes, if both pieces are in the same section and on the same page. Splitting ends when there are more than
// maxPieces.
func split(blocks []Block, size, overlap int) (pieces []Passage) {
	var path [maxLevel]string
	var units []unit
	var alone *Block // a heading that is not followed by text yet
	flush := func(level int) {
		if alone != nil && level <= alone.Level {
			text := Block{Text: short(alone.Text), From: alone.From, To: alone.To, Page: alone.Page}
			pieces = append(pieces, pack(unitsOf(text, size), headings(path[:alone.Level-1]), size, overlap)...)
		}
		pieces = append(pieces, pack(units, headings(path[:]), size, overlap)...)
		units, alone = nil, nil
	}
	for i, b := range blocks {
		if len(pieces) > maxPieces {
			return pieces
		}
		if b.Level > 0 {
			flush(b.Level)
			path[b.Level-1] = cmp.Or(short(b.Text), "…")
			clear(path[b.Level:])
			if strings.TrimSpace(b.Text) != "" {
				alone = &blocks[i]
			}
			continue
		}
		if alone = nil; len(units) > 0 && units[0].page != b.Page {
			flush(0)
		}
		units = append(units, unitsOf(b, size)...)
	}
	flush(0)
	return pieces
}

// short returns a heading on one line, cut at 200 bytes.
func short(heading string) string {
	const most = 200 // bytes
	heading = strings.Join(strings.Fields(heading), " ")
	if len(heading) <= most {
		return heading
	}
	n := most
	for !utf8.RuneStart(heading[n]) {
		n--
	}
	return heading[:n] + "…"
}

// headings returns the joined headings above a piece.
func headings(path []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(path), func(h string) bool { return h == "" }), " > ")
}

// unitsOf returns the units of a block: the whole block or, if it is too long, its lines. A line that is too long is split into
// sentences or words.
func unitsOf(b Block, size int) (units []unit) {
	if len(b.Text) <= size {
		return []unit{{b.Text, "\n\n", b.From, b.To, b.Page}}
	}
	sep, rows := "\n\n", strings.Split(b.Text, "\n")
	numbered := b.From > 0 && b.To-b.From == len(rows)-1 // each line of the block is one line of the file
	for i, row := range rows {
		from, to := b.From, b.To
		if numbered {
			from, to = b.From+i, b.From+i
		}
		for row != "" {
			n := cut(row, size)
			if text := strings.TrimRight(row[:n], " \t"); text != "" {
				units = append(units, unit{text, sep, from, to, b.Page})
				if sep = " "; len(text) == n { // cut within a word
					sep = ""
				}
			}
			row = row[n:]
		}
		sep = "\n"
	}
	return units
}

// cut returns the length of a line's next unit. If the line is longer than size, the unit is at most a quarter of size long,
// and ends after a sentence, or else after a word, or else after a character.
func cut(row string, size int) int {
	if len(row) <= size {
		return len(row)
	}
	most := max(size/4, utf8.UTFMax)
	sentence, word, char := 0, 0, 0
	var before rune
	for i, r := range row {
		if i > most {
			break
		}
		if char = i; unicode.IsSpace(r) {
			if word = i + utf8.RuneLen(r); strings.ContainsRune(".!?。", before) {
				sentence = word
			}
		}
		before = r
	}
	return cmp.Or(sentence, word, char)
}

// pack joins units into pieces.
func pack(units []unit, heading string, size, overlap int) (pieces []Passage) {
	for i := 0; i < len(units); {
		p, length := Passage{Heading: heading, Page: units[i].page}, 0
		end := i
		var text strings.Builder
		start := i - back(units[:i], overlap, size-len(units[i].text))
		for end = start; end < len(units); end++ {
			u := &units[end]
			if end > i && length+len(u.sep)+len(u.text) > size {
				break
			}
			if end > start {
				text.WriteString(u.sep)
			}
			text.WriteString(u.text)
			length = text.Len()
			if p.From == 0 {
				p.From = u.from
			}
			p.To = max(p.To, u.to)
		}
		p.Text = text.String()
		pieces = append(pieces, p)
		i = end
	}
	return pieces
}

// back returns the number of units at the end that together have at most overlap and at most room bytes.
func back(units []unit, overlap, room int) (n int) {
	left := min(overlap, room)
	for n < len(units) {
		u := &units[len(units)-1-n]
		if left -= len(u.text) + len(u.sep); left < 0 {
			break
		}
		n++
	}
	return n
}
