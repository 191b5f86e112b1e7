// Package lines reads files with one JSON value per line, and shortens text for display.
package lines

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
)

const (
	Max        = 64 << 20  // maximum size of a line in bytes
	readBuffer = 256 << 10 // size in bytes
)

// A Line is one line of a file, without the newline. Text is valid until the next line is read.
type Line struct {
	Number int // line number, from 1
	Text   []byte
	Fault  string // why Text is missing: the line is too long
}

// Read returns an iterator over all lines that are not blank. If reading fails, it yields the error last. It keeps at most limit
// bytes of a line in memory.
func Read(r io.Reader, limit int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		br := bufio.NewReaderSize(r, readBuffer)
		var long []byte // buffer for lines that are too long for br's buffer
		for n := 1; ; n++ {
			text, err := br.ReadSlice('\n')
			size := len(text)
			if err == bufio.ErrBufferFull {
				long, size, err = readLong(br, append(long[:0], text...), limit)
				text = long
			}
			if err != nil && err != io.EOF {
				yield(Line{}, fmt.Errorf("trace: reading line %d: %w", n, err))
				return
			}
			var more bool
			switch {
			case size > limit:
				more = yield(Line{Number: n, Fault: fmt.Sprintf("longer than %d bytes", limit)}, nil)
			case len(bytes.TrimSpace(text)) == 0:
				more = true
			default:
				more = yield(Line{Number: n, Text: bytes.TrimSuffix(text, []byte{'\n'})}, nil)
			}
			if !more || err == io.EOF {
				return
			}
		}
	}
}

// readLong reads the rest of a line that starts with head. It keeps at most limit bytes of the line, and returns the line's full
// size.
func readLong(br *bufio.Reader, head []byte, limit int) (text []byte, size int, err error) {
	text, size, err = head, len(head), bufio.ErrBufferFull
	for err == bufio.ErrBufferFull {
		var part []byte
		part, err = br.ReadSlice('\n')
		size += len(part)
		if size <= limit {
			text = append(text, part...)
		}
	}
	return text, size, err
}
