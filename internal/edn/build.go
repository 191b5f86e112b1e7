package edn

// builder collects the items of collections while they are read. Collections are many and
// small, so they are allocated from pieces that grow up to largestPiece.
type builder struct {
	stack       []Value // the items so far of all open collections
	items       []Value // the rest of a piece
	collections []collection
	piece       int
}

const largestPiece = 1024

// take makes a collection of the items above base and removes them.
func (b *builder) take(base int) *collection {
	taken := b.stack[base:]
	b.stack = b.stack[:base]
	if len(taken) == 0 {
		return nil
	}
	if len(b.collections) == 0 {
		b.piece = min(max(2*b.piece, 8), largestPiece)
		b.collections = make([]collection, b.piece/4)
	}
	c := &b.collections[0]
	b.collections = b.collections[1:]
	c.items = b.room(len(taken))
	copy(c.items, taken)
	c.depth = depthOf(taken)
	return c
}

// room returns room for n items for the caller alone.
func (b *builder) room(n int) []Value {
	if n > b.piece/4 { // allocated separately, so that little of a piece is lost
		return make([]Value, n)
	}
	if len(b.items) < n {
		b.items = make([]Value, b.piece)
	}
	room := b.items[:n:n]
	b.items = b.items[n:]
	return room
}
