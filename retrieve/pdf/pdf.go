// Package pdf reads the text of PDF files for package retrieve:
//
//	index.Readers = map[string]retrieve.Reader{".pdf": pdf.Read}
//
// It finds text that is in the file as text. Scanned pages have none, and are left out.
//
// It uses github.com/ledongthuc/pdf, which is pure Go without dependencies and gives the place of every letter, from
// which lines and spaces are found. github.com/pdfcpu/pdfcpu extracts no text, and
// github.com/klippa-app/go-pdfium needs the library PDFium beside the program.
package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"

	"github.com/stonelayer/stone/retrieve"
)

const (
	maxTime  = 30 * time.Second // a file can be made so that reading it never ends
	maxPages = 10_000
)

// Read is a retrieve.Reader. Each page is a block or several, which have the number of the page. It gives up after 30
// seconds. What a file that never ends has taken of memory and processor is lost until the process ends.
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
	r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, nil, fmt.Errorf("damaged or encrypted PDF: %w", err)
	}
	pages := r.NumPage()
	if pages > maxPages {
		return nil, nil, fmt.Errorf("PDF with %d pages: want at most %d", pages, maxPages)
	}
	for n := 1; n <= pages; n++ {
		page := r.Page(n)
		if page.V.IsNull() {
			continue
		}
		for _, text := range paragraphs(page.Content().Text) {
			blocks = append(blocks, retrieve.Block{Text: text, Page: n})
		}
	}
	if blocks == nil {
		return nil, nil, errNoText
	}
	if title := strings.TrimSpace(r.Trailer().Key("Info").Key("Title").Text()); title != "" {
		meta = map[string]string{"title": title}
	}
	return blocks, meta, nil
}

// paragraphs joins letters to words, lines and paragraphs by the places at which they are printed.
func paragraphs(letters []pdf.Text) (all []string) {
	var text strings.Builder
	flush := func() {
		if s := strings.TrimSpace(text.String()); s != "" {
			all = append(all, s)
		}
		text.Reset()
	}
	for i, l := range letters {
		if i > 0 {
			before := letters[i-1]
			size := max(math.Abs(l.FontSize), math.Abs(before.FontSize), 1)
			down, gap := math.Abs(before.Y-l.Y), l.X-(before.X+before.W)
			switch {
			case down > 1.8*size:
				flush()
			case down > 0.5*size:
				text.WriteByte('\n')
			case (gap > 0.15*size || gap < -size) && !strings.HasSuffix(before.S, " ") && !strings.HasPrefix(l.S, " "):
				text.WriteByte(' ')
			}
		}
		text.WriteString(strings.ToValidUTF8(strings.ReplaceAll(l.S, "\x00", ""), ""))
	}
	flush()
	return all
}
