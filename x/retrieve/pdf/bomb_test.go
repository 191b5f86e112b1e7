package pdf_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/x/retrieve/pdf"
)

func deflated(data []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	w.Write(data)
	w.Close()
	return out.Bytes()
}

// compressed returns the document with one page whose content was compressed so many times.
func compressed(content []byte, times int) []byte {
	for range times {
		content = deflated(content)
	}
	return filtered(fmt.Sprintf("/Filter [%s]", strings.Repeat("/FlateDecode ", times)), string(content))
}

// What a small file expands to is bounded: each is refused, or has lost the page, and needs little memory.
func TestBombs(t *testing.T) {
	page := "BT /F 10 Tf 50 700 Td (Hello) Tj ET "
	for name, c := range map[string]struct {
		file []byte
		want string // of the error, "" for none
	}{
		"plain":             {compressed([]byte(page), 1), ""},
		"twice":             {compressed([]byte(page), 2), ""},
		"expands":           {compressed(bytes.Repeat([]byte("0 "), 100<<20/2), 1), "a page of more than 8 MiB"},
		"expands twice":     {compressed(bytes.Repeat([]byte("0 "), 200<<20/2), 2), "a page of more than 8 MiB"},
		"states":            {compressed(bytes.Repeat([]byte("q "), 3<<20), 1), "too many states"},
		"letters":           {compressed([]byte("BT /F 10 Tf ("+strings.Repeat("a", 2<<20)+") Tj ET"), 1), ""},
		"operators":         {compressed(bytes.Repeat([]byte("BT ET "), 1<<20), 1), "without text"},
		"operands":          {compressed(bytes.Repeat([]byte("0 "), 3<<20), 1), "without text"},
		"pages":             {document(many(40, strings.Repeat("0 0 m ", 1<<20/3))...), "expands to more than 64 MiB|takes longer than"}, // on a slow machine
		"stream of objects": {append([]byte("%PDF-1.5\n9 0 obj\n<< /Type /ObjStm /Filter /FlateDecode >>\nstream\n"), append(deflated(make([]byte, 80<<20)), document(page)[9:]...)...), "expands to more than 64 MiB"},
		"objects, hidden":   {append([]byte("%PDF-1.5\n9 0 obj\n<< /Type 7 0 R /Filter 8 0 R >>\nstream\r\n"), append(deflated(deflated(make([]byte, 80<<20))), document(page)[9:]...)...), "expands to more than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, _, err := pdf.Read(c.file)
			runtime.ReadMemStats(&after)
			if (err == nil) != (c.want == "") || err != nil && !slices.ContainsFunc(strings.Split(c.want, "|"), func(w string) bool { return strings.Contains(err.Error(), w) }) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 1000 {
				t.Errorf("a file of %d bytes took %d MB", len(c.file), got)
			}
			t.Logf("%d bytes: %d MB, %v", len(c.file), (after.TotalAlloc-before.TotalAlloc)>>20, time.Since(start))
		})
	}
}

func many(n int, content string) (all []string) {
	for range n {
		all = append(all, content)
	}
	return all
}
