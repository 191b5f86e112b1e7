// Package pdf reads the text of PDF files for package retrieve:
//
//	index.Readers = map[string]retrieve.Reader{".pdf": pdf.Read}
//
// It reads only the text that the file contains as text. Scanned pages, which contain only images, are skipped.
//
// It uses github.com/ledongthuc/pdf, which is written in pure Go without dependencies, and reports the position of every letter,
// from which lines and spaces are derived. Two alternatives were rejected: github.com/klippa-app/go-pdfium can read more damaged
// files and more fonts, but adds PDFium in WebAssembly and a runtime for it to every program; github.com/pdfcpu/pdfcpu cannot
// extract plain text.
package pdf

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"
	"golang.org/x/text/unicode/norm"

	"github.com/stonelayer/stone/x/retrieve"
)

const (
	maxTime  = 30 * time.Second // a malicious file could take forever to read
	maxPages = 10_000
	maxDepth = 64 // maximum depth of the page tree
)

// Read is a retrieve.Reader for PDF files. Each page becomes one or more blocks that have the number of the page. Read returns an
// error after 30 seconds, or if the file expands to more than 64 MiB, not counting the object streams of an encrypted file.
func Read(data []byte) ([]retrieve.Block, map[string]string, error) {
	type result struct {
		blocks []retrieve.Block
		meta   map[string]string
		err    error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if cause := recover(); cause != nil {
				r = result{err: fmt.Errorf("damaged PDF: %v", cause)}
			}
			done <- r
		}()
		r.blocks, r.meta, r.err = read(data)
	}()
	select {
	case r := <-done:
		return r.blocks, r.meta, r.err
	case <-time.After(maxTime):
		return nil, nil, fmt.Errorf("reading the PDF takes longer than %v", maxTime)
	}
}

var errNoText = errors.New("PDF without text: its pages may be pictures")

func read(data []byte) (blocks []retrieve.Block, meta map[string]string, err error) {
	data = bare(data)
	left := &allowance{maxInflated - objectStreams(data), time.Now().Add(maxTime)}
	if left.left < 0 {
		return nil, nil, errInflated
	}
	r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, nil, fmt.Errorf("damaged or encrypted PDF: %w", err)
	}
	pages, err := pagesOf(r.Trailer().Key("Root").Key("Pages"), nil, 0)
	if err != nil {
		return nil, nil, err
	}
	for i, page := range pages {
		w := writing{allowance: left, ofPage: maxOfPage}
		failed := w.page(page)
		if errors.As(failed, new(tooLarge)) {
			return nil, nil, failed
		}
		err = cmp.Or(err, failed) // a damaged page does not affect other pages
		for _, text := range paragraphs(w.letters) {
			blocks = append(blocks, retrieve.Block{Text: text, Page: i + 1})
		}
	}
	if blocks == nil {
		return nil, nil, cmp.Or(err, errNoText)
	}
	if title := strings.TrimSpace(r.Trailer().Key("Info").Key("Title").Text()); title != "" {
		meta = map[string]string{"title": title}
	}
	return blocks, meta, nil
}

// bare returns a file from its header to its end, marked as version 1.7, because the library rejects later versions, whose text
// is encoded in the same way.
func bare(data []byte) []byte {
	if start := bytes.Index(data[:min(len(data), 1024)], []byte("%PDF-")); start > 0 {
		data = data[start:]
	}
	if end := bytes.LastIndex(data, []byte("%%EOF")); end >= 0 {
		data = data[:end+len("%%EOF")]
	}
	if len(data) > 9 && bytes.HasPrefix(data, []byte("%PDF-2.")) {
		data = bytes.Clone(data)
		copy(data[5:], "1.7")
	}
	return data
}

// pagesOf returns the pages below a node of the page tree. The library itself would loop forever if the tree contained a cycle.
func pagesOf(v pdf.Value, pages []pdf.Page, depth int) ([]pdf.Page, error) {
	if depth > maxDepth || len(pages) > maxPages {
		return nil, fmt.Errorf("PDF with more than %d pages, or a loop of pages", maxPages)
	}
	if v.Key("Type").Name() == "Page" {
		parent := v
		for range maxDepth {
			if parent = parent.Key("Parent"); parent.IsNull() {
				return append(pages, pdf.Page{V: v}), nil
			}
		}
		return nil, errors.New("damaged PDF: a page without a root")
	}
	var err error
	for i := range v.Key("Kids").Len() {
		if pages, err = pagesOf(v.Key("Kids").Index(i), pages, depth+1); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// paragraphs joins letters into words, lines and paragraphs by their printed positions. If a font does not state the widths of
// its letters, only the spaces in the text separate words.
func paragraphs(letters []letter) (all []string) {
	var text strings.Builder
	flush := func() {
		if s := strings.TrimSpace(text.String()); s != "" {
			all = append(all, s)
		}
		text.Reset()
	}
	var before *letter
	for i := range letters {
		l := &letters[i]
		if before != nil {
			small, size := max(min(l.size, before.size), 1), max(l.size, before.size, 1)
			down, gap := math.Abs(before.across-l.across), l.along-(before.along+before.width)
			switch {
			case down > 1.8*small && down > 0.5*size:
				flush()
			case down > 0.5*size:
				text.WriteByte('\n')
			case before.width > 0 && (gap > 0.2*size || gap < -size) && before.text != " " && l.text != " ":
				text.WriteByte(' ')
			}
		}
		text.WriteString(norm.NFKC.String(strings.ToValidUTF8(strings.ReplaceAll(l.text, "\x00", ""), ""))) // normalization resolves ligatures
		before = l
	}
	flush()
	return all
}
