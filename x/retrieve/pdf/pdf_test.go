package pdf_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/pdf"
)

// document returns a PDF with a page for each content, in a font whose letters are half as wide as high.
func document(contents ...string) []byte { return filtered("", contents...) }

// filtered is document with a filter of all contents.
func filtered(filter string, contents ...string) []byte {
	var out bytes.Buffer
	var at []int
	object := func(format string, args ...any) {
		at = append(at, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n"+format+"\nendobj\n", append([]any{len(at)}, args...)...)
	}
	out.WriteString("%PDF-1.4\n")
	var kids []string
	for i := range contents {
		kids = append(kids, fmt.Sprintf("%d 0 R", 5+2*i))
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Count %d /Kids [%s] >>", len(kids), strings.Join(kids, " "))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Half /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 126 /Widths [%s] >>", strings.Repeat("500 ", 95))
	object("<< /Title (The manual) >>")
	for i, c := range contents {
		object("<< /Type /Page /Parent 2 0 R /Resources << /Font << /F 3 0 R >> >> /Contents %d 0 R >>", 6+2*i)
		object("<< %s /Length %d >>\nstream\n%s\nendstream", filter, len(c), c)
	}
	xref := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, offset := range at {
		fmt.Fprintf(&out, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, xref)
	return out.Bytes()
}

func shown(blocks []retrieve.Block) string {
	var all []string
	for _, b := range blocks {
		all = append(all, fmt.Sprintf("%d %s", b.Page, strings.ReplaceAll(b.Text, "\n", "|")))
	}
	return strings.Join(all, "\n")
}

func TestRead(t *testing.T) {
	// Kerning is no space, a gap as wide as half a letter is one, as in what TeX makes.
	blocks, meta, err := pdf.Read(document(
		"BT /F 10 Tf 50 700 Td [(Two) -300 (w) 20 (ords)] TJ 0 -12 Td (and a line) Tj 0 -40 Td (A paragraph) Tj ET",
		"BT /F 10 Tf 50 700 Td (The second page) Tj ET",
	))
	if want := "1 Two words|and a line\n1 A paragraph\n2 The second page"; err != nil || shown(blocks) != want || meta["title"] != "The manual" {
		t.Errorf("%s\nwant\n%s\n%v, %v", shown(blocks), want, meta, err)
	}
}

// What a browser prints is read.
func TestReadOfBrowser(t *testing.T) {
	need.Time(t)
	chromium := need.Program(t, "chromium")
	dir := t.TempDir()
	page, file := filepath.Join(dir, "a.html"), filepath.Join(dir, "a.pdf")
	text := `<title>The handbook</title><h1>Pumps</h1><p>To replace the pump, open the cover. It has <b>four</b> screws.</p><p>Cafés cost 5.</p>
		<div style="page-break-before:always"></div><p>Wash the filter.</p>`
	if err := os.WriteFile(page, []byte(`<meta charset="utf-8">`+text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+filepath.Join(dir, "profile"), "--no-pdf-header-footer", "--print-to-pdf="+file, page)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks, meta, err := pdf.Read(data)
	if want := "1 Pumps\n1 To replace the pump, open the cover. It has four screws.\n1 Cafés cost 5.\n2 Wash the filter."; err != nil || shown(blocks) != want || meta["title"] != "The handbook" {
		t.Errorf("%s\nwant\n%s\n%v, %v", shown(blocks), want, meta, err)
	}
}

// Damaged files are errors, and nothing else.
func TestDamaged(t *testing.T) {
	whole := document("BT /F 10 Tf 50 700 Td (text) Tj ET")
	for name, data := range map[string][]byte{
		"empty": nil, "no PDF": []byte("text"), "without text": document(""),
		"a loop of pages": bytes.Replace(whole, []byte("/Kids [5 0 R]"), []byte("/Kids [2 0 R]"), 1),
		"bad operator":    document("BT (a b) Tf ET"),
	} {
		if blocks, _, err := pdf.Read(data); err == nil {
			t.Errorf("%s: %s", name, shown(blocks))
		}
	}
	for i := range whole {
		if i%7 == 0 {
			pdf.Read(whole[:i])
			broken := bytes.Clone(whole)
			broken[i] ^= 0x15
			pdf.Read(broken)
		}
	}
}
