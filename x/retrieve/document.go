package retrieve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// A Block is a heading or a paragraph of a document.
type Block struct {
	Text  string
	Level int // 1 to 6 for a heading, 0 for text
	// From and To are the first and last line of the block, counted from 1. Page is its page, in files without lines. Zero means
	// unknown.
	From, To, Page int
}

// A Reader splits a file into blocks. The result meta describes the document as a whole, for example with a title. A Reader must
// be safe for concurrent use. If it returns an error or panics, the file is skipped and reported.
type Reader func(data []byte) (blocks []Block, meta map[string]string, err error)

// A Passage is a piece of a document.
type Passage struct {
	File string `json:"file"`
	// From and To are the first and last line of the passage, and Page is its page in a file without lines. Zero means unknown.
	From int `json:"from,omitempty"`
	To   int `json:"to,omitempty"`
	Page int `json:"page,omitempty"`
	// Heading contains the headings above the passage, outermost first: "Guide > Install".
	Heading string            `json:"heading,omitempty"`
	Text    string            `json:"text"`
	Meta    map[string]string `json:"meta,omitempty"` // metadata of the document
}

// Source returns the location of the passage, such as "guide.md:12-20" or "guide.pdf, page 3".
func (p *Passage) Source() string {
	switch {
	case p.Page > 0:
		return fmt.Sprintf("%s, page %d", p.File, p.Page)
	case p.From > 0 && p.To > p.From:
		return fmt.Sprintf("%s:%d-%d", p.File, p.From, p.To)
	case p.From > 0:
		return fmt.Sprintf("%s:%d", p.File, p.From)
	}
	return p.File
}

// embedded returns the text to embed.
func (p *Passage) embedded() string {
	if p.Heading == "" {
		return p.Text
	}
	return p.Heading + "\n\n" + p.Text
}

func (p *Passage) digest() string { return digest([]byte(p.Heading), []byte(p.Text)) }

// clean removes bytes that a database does not accept.
func clean(s string) string { return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "") }

// A document is a document with its pieces.
type document struct {
	name   string
	digest string // digest of the document's bytes and of the settings with which it was split
	meta   map[string]string
	pieces []Passage
}

func digest(parts ...[]byte) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:", len(p))
		sum.Write(p)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
