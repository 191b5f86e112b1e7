package pdf_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/x/retrieve/pdf"
)

// withForm returns a file with a page for each content. The form X has the words "in a form".
func withForm(pages ...string) []byte {
	stream := func(dict, s string) string {
		return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dict, len(s), s)
	}
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>", "",
		fmt.Sprintf("<< /Type /Font /Subtype /Type1 /BaseFont /Half /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 126 /Widths [%s] >>", strings.Repeat("500 ", 95)),
		stream("/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /Font << /F 3 0 R >> >>", "BT /F 10 Tf 50 600 Td (in a form) Tj ET")}
	kids := ""
	for _, p := range pages {
		n := len(objects) + 1
		objects = append(objects, stream("", p), fmt.Sprintf("<< /Type /Page /Parent 2 0 R /Resources << /Font << /F 3 0 R >> /XObject << /X 4 0 R >> >> /Contents %d 0 R >>", n))
		kids += fmt.Sprintf("%d 0 R ", n+1)
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(pages), kids)
	var out bytes.Buffer
	out.WriteString("%PDF-1.7\n")
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, o := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	fmt.Fprintf(&out, "%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", table, len(objects)+1, out.Len())
	return out.Bytes()
}

// What other programs write is read: text in forms, around damage, in later versions and in each direction.
func TestOthersFiles(t *testing.T) {
	const one = "BT /F 10 Tf 50 700 Td (page one) Tj ET"
	whole := withForm(one)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"plain":         {whole, "1 page one"},
		"a form":        {withForm(one + " q 1 0 0 1 0 0 cm /X Do Q"), "1 page one/1 in a form"}, // what is stamped, merged, imposed or placed
		"a form alone":  {withForm("/X Do"), "1 in a form"},
		"one bad page":  {withForm(one, "BT (a b) Tf ET", "BT /F 10 Tf 50 700 Td (page three) Tj ET"), "1 page one/3 page three"},
		"Q too often":   {withForm(one + " Q Q"), "1 page one"},
		"PDF 2.0":       {bytes.Replace(whole, []byte("%PDF-1.7"), []byte("%PDF-2.0"), 1), "1 page one"},
		"bytes before":  {append([]byte("HTTP/1.1 200 OK\r\n\r\n"), whole...), "1 page one"},
		"zeros at end":  {append(bytes.Clone(whole), make([]byte, 2000)...), "1 page one"},
		"rotated by 90": {withForm("BT /F 10 Tf 0 1 -1 0 100 100 Tm (on its side) Tj ET"), "1 on its side"},
	} {
		blocks, _, err := pdf.Read(c.data)
		var all []string
		for _, b := range blocks {
			all = append(all, fmt.Sprintf("%d %s", b.Page, b.Text))
		}
		if got := strings.Join(all, "/"); got != c.want {
			t.Errorf("%s: %q, want %q, %v", name, got, c.want, err)
		}
	}
}
