package llm

import (
	"compress/flate"
	"io"
	"slices"
	"sync"
)

// Compression detects text that continues without adding anything new. It trips if, in History consecutive checks, the last Window
// bytes were compressed to less than Threshold times their size. The zero value uses the defaults. The fields must not change after
// the first byte. Compression is not safe for concurrent use.
//
// Answers shorter than the window are not checked.
type Compression struct {
	Window    int     // number of bytes to compress, the newest ones; default 1024
	Threshold float64 // ratio of compressed size to original size below which a check fails; default 0.18
	History   int     // number of consecutive checks below Threshold that trip the detector; default 3

	ring   []byte
	seen   int64
	ratios []float64 // ratios of the last checks, at most History, newest first
	hit    *RepetitionHit
}

func (c *Compression) init() {
	if c.Window <= 0 {
		c.Window = 1024
	}
	if c.Threshold <= 0 {
		c.Threshold = 0.18
	}
	if c.History <= 0 {
		c.History = 3
	}
	c.ring = make([]byte, c.Window)
}

// Add adds one byte.
func (c *Compression) Add(b byte) { c.Write([]byte{b}) }

// Write adds p to the text, without checking it. The error is always nil.
func (c *Compression) Write(p []byte) (int, error) {
	if c.ring == nil {
		c.init()
	}
	n := len(p)
	if skip := n - c.Window; skip > 0 {
		p = p[skip:]
		c.seen += int64(skip)
	}
	for len(p) > 0 {
		k := copy(c.ring[c.seen%int64(c.Window):], p)
		p = p[k:]
		c.seen += int64(k)
	}
	return n, nil
}

// Check compresses the last Window bytes, and trips if the ratios of the last History checks are all below Threshold. A Watcher
// calls it at every tick.
func (c *Compression) Check() {
	if c.hit != nil || c.ring == nil || c.seen < int64(c.Window) {
		return
	}
	ratio := float64(c.deflated()) / float64(c.Window)
	c.ratios = slices.Insert(c.ratios, 0, ratio)
	if len(c.ratios) > c.History {
		c.ratios = c.ratios[:c.History]
	}
	if len(c.ratios) == c.History && slices.Max(c.ratios) < c.Threshold {
		c.hit = &RepetitionHit{Kind: "compression", Ratios: slices.Clone(c.ratios), Position: c.seen}
	}
}

// Tripped returns the repetition that tripped the detector, or nil if it has not tripped.
func (c *Compression) Tripped() *RepetitionHit { return c.hit }

// deflated returns the compressed size of the last Window bytes.
func (c *Compression) deflated() int {
	var size counter
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&size)
	at := c.seen % int64(c.Window)
	for _, part := range [][]byte{c.ring[at:], c.ring[:at]} {
		// A flate.Writer fails only if the underlying writer fails, and a counter never does.
		_, _ = w.Write(part)
	}
	_ = w.Close()
	return int(size)
}

// deflaters are shared, because each uses more than half a megabyte.
var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(io.Discard, flate.DefaultCompression)
	if err != nil {
		panic(err) // fails only for an unknown level
	}
	return w
}}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
