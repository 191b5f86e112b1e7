package llm

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// NGram detects verbatim repetition: it trips when a window of N bytes has occurred Threshold times anywhere in the text,
// overlapping or not. The zero value uses the defaults. The fields must not change after the first byte.
//
// NGram is exact for a text of any length, because it keeps the text and an index of about the same size. It is not safe for
// concurrent use.
type NGram struct {
	N         int // size of a window in bytes; default 100
	Threshold int // how many occurrences of the same window trip the detector; default 4

	// Every window of N bytes contains a block of (N+1)/2 bytes that starts at a multiple of its own size. It is therefore enough
	// to index these blocks, which by default start at two of every hundred positions. If the text repeats an earlier block, the
	// position becomes pending: it is checked again as soon as N bytes can agree. If they do agree, the position becomes a match
	// and is followed byte by byte. Boilerplate leads to many pending positions but no matches.
	block   int
	outMul  uint64 // hashMul^block; needed to remove the oldest byte from the hash
	hash    uint64 // hash of the last block bytes
	text    []byte // all bytes so far
	heads   []head // indexed by the top bits of a tag
	shift   uint   // 32 - log2(len(heads))
	blocks  []indexed
	matches []int // distances to the earlier windows that equal the current window
	pending []place
	free    uint32   // 1 + the index of the first unused place in pending; 0 if there is none
	due     []uint32 // by position modulo N: 1 + the index of the first place to check there; 0 if there is none
	waiting int      // number of places in use
	hit     *RepetitionHit
}

// head is the start of the search for a block: 1 + the number of the newest block, or 0, and a bit for each block by the low bits
// of its tag. In most cases, the bits alone show that a block is new, because almost all text is new.
type head struct{ newest, bits uint32 }

func (h head) mayHold(tag uint32) bool { return h.bits>>(tag&31)&1 != 0 }

// indexed is a block in the index: the tag of its hash, and 1 + the number of the previous
// block under the same head, or 0.
type indexed struct{ tag, prev uint32 }

// place is a position that may become a match with the text that is back bytes earlier, if need more bytes agree. Next is 1 + the
// next place in the same list, or 0.
type place struct{ back, need, next uint32 }

const hashMul = 0x9E3779B97F4A7C15

func (c *NGram) init() {
	if c.N <= 0 {
		c.N = 100
	}
	if c.Threshold <= 0 {
		c.Threshold = 4
	}
	c.block = (c.N + 1) / 2
	c.outMul = 1
	for range c.block {
		c.outMul *= hashMul
	}
	c.shift = 32 - 6
	c.heads = make([]head, 1<<6)
}

// Add adds one byte to the text. After the detector has tripped, Add does nothing.
func (c *NGram) Add(b byte) { c.Write([]byte{b}) }

// Write adds p to the text. After the detector has tripped, Write does nothing. The error is always nil.
func (c *NGram) Write(p []byte) (int, error) {
	if c.hit != nil {
		return len(p), nil
	}
	if c.block == 0 {
		c.init()
	}
	pos := len(c.text)
	c.text = append(c.text, p...)
	text, block, outMul := c.text, c.block, c.outMul
	heads, shift := c.heads, c.shift
	hash, busy := c.hash, c.busy()
	nextBlock := pos + block - 1 - pos%block // the next block's last position
	for ; pos < len(text); pos++ {
		in := uint64(text[pos])
		if pos >= block {
			in -= outMul * uint64(text[pos-block])
		}
		hash = hash*hashMul + in
		tag := tagOf(hash)
		if busy || heads[tag>>shift].mayHold(tag) {
			if c.look(pos, tag) {
				return len(p), nil
			}
			busy = c.busy()
		}
		if pos == nextBlock {
			c.index(tag)
			nextBlock += block
			heads, shift = c.heads, c.shift
		}
	}
	c.hash = hash
	return len(p), nil
}

// Tripped returns the repetition that tripped the detector, or nil if it has not tripped.
func (c *NGram) Tripped() *RepetitionHit { return c.hit }

// Text returns the text so far, at most up to the end of the Write that tripped. It must
// not be modified.
func (c *NGram) Text() []byte { return c.text }

// busy reports whether every byte must be checked, not only the last byte of each block.
func (c *NGram) busy() bool {
	return len(c.matches)+c.waiting > 0 || c.Threshold == 1
}

// look updates the matches and the pending places for the byte at pos, adds new ones for blocks with the given tag, and reports
// whether the detector trips.
func (c *NGram) look(pos int, tag uint32) bool {
	text := c.text
	c.matches = slices.DeleteFunc(c.matches, func(back int) bool { return text[pos] != text[pos-back] })
	c.settle(pos)
	for k := c.heads[tag>>c.shift].newest; k != 0; k = c.blocks[k-1].prev {
		if c.blocks[k-1].tag == tag {
			c.note(pos, int(k)*c.block-1)
		}
	}
	if pos+1 < c.N || len(c.matches)+1 < c.Threshold {
		return false
	}
	window := bytes.Clone(text[pos+1-c.N : pos+1])
	hit := &RepetitionHit{Kind: "ngram", Window: window, Position: int64(pos + 1)}
	*c = NGram{N: c.N, Threshold: c.Threshold, text: text, hit: hit}
	return true
}

// settle removes the pending places that are due at pos. A place whose bytes agree becomes a match.
func (c *NGram) settle(pos int) {
	if c.waiting == 0 {
		return
	}
	slot := &c.due[pos%c.N]
	for k := *slot; k != 0; {
		p := &c.pending[k-1]
		from, to, back := pos+1-int(p.need), pos+1, int(p.back)
		if bytes.Equal(c.text[from:to], c.text[from-back:to-back]) {
			c.matches = append(c.matches, back)
		}
		k, p.next, c.free = p.next, c.free, k
		c.waiting--
	}
	*slot = 0
}

// note records that the text up to pos repeats an earlier block that ends at end. It does nothing if the repetition is part of a
// match, or if only the hashes agree.
func (c *NGram) note(pos, end int) {
	back := pos - end
	if slices.Contains(c.matches, back) {
		return
	}
	size, word := 0, binary.LittleEndian.Uint64
	for size+8 <= c.N && size+7 <= end && word(c.text[pos-size-7:]) == word(c.text[end-size-7:]) {
		size += 8
	}
	for size < c.N && size <= end && c.text[pos-size] == c.text[end-size] {
		size++
	}
	switch {
	case size == c.N:
		c.matches = append(c.matches, back)
	case size >= c.block:
		if c.due == nil {
			c.due = make([]uint32, c.N)
		}
		slot := &c.due[(pos+c.N-size)%c.N]
		p := place{uint32(back), uint32(c.N - size), *slot}
		if k := c.free; k != 0 {
			c.free, c.pending[k-1], *slot = c.pending[k-1].next, p, k
		} else {
			c.pending = append(c.pending, p)
			*slot = uint32(len(c.pending))
		}
		c.waiting++
	}
}

// index adds the block that ends with the last byte to the index. The argument is the tag of its hash.
func (c *NGram) index(tag uint32) {
	c.blocks = append(c.blocks, indexed{tag, 0})
	if 2*len(c.blocks) > len(c.heads) {
		c.shift--
		c.heads = make([]head, 2*len(c.heads))
		for k := range c.blocks {
			c.link(k)
		}
		return
	}
	c.link(len(c.blocks) - 1)
}

func (c *NGram) link(k int) {
	b := &c.blocks[k]
	h := &c.heads[b.tag>>c.shift]
	b.prev, h.newest = h.newest, uint32(k+1)
	h.bits |= 1 << (b.tag & 31)
}

// tagOf mixes the bits of a hash, because its low bits depend only on the low bits of the text.
func tagOf(hash uint64) uint32 {
	return uint32((hash ^ hash>>32) * hashMul >> 32)
}
