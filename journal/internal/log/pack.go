package log

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// packed is the first byte of a packed content. Its size follows (encoding/binary, Uvarint), then the content, compressed
// with DEFLATE. A row stays sealed with its plain content. So the seal also tells a packed content from one
// that happens to begin with this byte, and a program that knows no packed contents finds the row damaged.
const packed = 1

// Worth reports whether so few bytes are worth packing a content. Tests pack every content.
var Worth = func(plain, packed int) bool { return packed <= plain-plain/8 }

// Bounds of packed contents: larger ones are left as they are. DEFLATE shrinks nothing more than maxRatio times, so a
// damaged row that claims more is refused before it gets the memory.
const (
	mostPacked = 256 << 20
	maxRatio   = 1032
)

// packer packs contents.
type packer struct {
	out  bytes.Buffer
	into *flate.Writer
}

// pack returns a packed content, or nil if that saves too little.
func (p *packer) pack(content []byte) ([]byte, error) {
	if len(content) > mostPacked {
		return nil, nil
	}
	p.out.Reset()
	p.out.WriteByte(packed)
	p.out.Write(binary.AppendUvarint(nil, uint64(len(content))))
	if p.into == nil {
		p.into, _ = flate.NewWriter(nil, flate.DefaultCompression) // which is a valid level
	}
	p.into.Reset(&p.out)
	_, err := p.into.Write(content)
	if err = errors.Join(err, p.into.Close()); err != nil || !Worth(len(content), p.out.Len()) {
		return nil, err
	}
	return bytes.Clone(p.out.Bytes()), nil
}

// isPacked reports whether the content of a row looks packed. Only results and nodes are.
func (r *Row) isPacked() bool { return !r.isIntent() && len(r.Content) > 0 && r.Content[0] == packed }

var errPacked = errors.New("cannot be decompressed")

// unpackers are readers of DEFLATE, which have 40 KB.
var unpackers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// unpack returns a packed content. It takes no more memory than the size that the content claims, and refuses one that
// claims more than its bytes can have.
func unpack(content []byte) ([]byte, error) {
	size, n := binary.Uvarint(content[1:])
	if n <= 0 || size > mostPacked || size > maxRatio*uint64(len(content)) {
		return nil, fmt.Errorf("%w: it claims %d bytes", errPacked, size)
	}
	from := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(from)
	if err := from.(flate.Resetter).Reset(bytes.NewReader(content[1+n:]), nil); err != nil {
		return nil, err
	}
	out := make([]byte, size)
	if _, err := io.ReadFull(from, out); err != nil {
		return nil, fmt.Errorf("%w: %w", errPacked, err)
	}
	if more, err := from.Read(make([]byte, 1)); more > 0 || err != io.EOF {
		return nil, fmt.Errorf("%w: it does not end after %d bytes", errPacked, size)
	}
	return out, nil
}
