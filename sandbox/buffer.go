package sandbox

import (
	"fmt"
	"strings"
	"sync"
)

// A Buffer keeps the first and the last bytes written to it, at most Max bytes in total. It is safe for concurrent use.
type Buffer struct {
	Max int // number of bytes to keep

	mu    sync.Mutex
	total int64
	head  []byte // the first Max/2 bytes
	tail  []byte // bytes after head; ends with the last Max-Max/2 bytes written
}

// Write writes p to the buffer. The error is always nil, so that the command can continue.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(p)
	b.total += int64(n)
	first := min(n, b.Max/2-len(b.head))
	b.head = append(b.head, p[:first]...)
	p = p[first:]
	last := b.Max - b.Max/2
	if len(p) >= last {
		b.tail, p = b.tail[:0], p[len(p)-last:]
	}
	if b.tail = append(b.tail, p...); len(b.tail) > 2*last {
		b.tail = append(b.tail[:0], b.tail[len(b.tail)-last:]...)
	}
	return n, nil
}

// Size returns the number of bytes written.
func (b *Buffer) Size() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// String returns the kept bytes as valid UTF-8. If bytes are missing, a line between the first and the last bytes says how many.
func (b *Buffer) String() string { return b.Text(func(part string) string { return part }) }

// Text is like String, but applies clean to the first and to the last bytes, or to the whole text if no bytes are missing.
func (b *Buffer) Text(clean func(part string) string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	tail := b.tail[max(0, len(b.tail)-(b.Max-b.Max/2)):]
	left := b.total - int64(len(b.head)+len(tail))
	if left == 0 {
		return strings.ToValidUTF8(clean(string(b.head)+string(tail)), "\uFFFD")
	}
	text := fmt.Sprintf("%s\n[%d bytes are left out here]\n%s", clean(string(b.head)), left, clean(string(tail)))
	return strings.ToValidUTF8(text, "\uFFFD")
}
