package pdf

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/ledongthuc/pdf"
)

// Limits on the memory that reading a file may require. The library reads a stream piece by piece, but keeps the decoded objects.
const (
	maxInflated = 64 << 20 // maximum bytes read from the streams of a file; every read counts
	maxOfPage   = 8 << 20  // maximum bytes of a page's streams
	maxLetters  = 1 << 20  // maximum letters of a page
	maxKept     = 1 << 10  // maximum number of states saved by q
	someOps     = 1 << 12  // number of operators between checks of the time
)

// A tooLarge is the error for a file that expands to too many bytes.
type tooLarge string

func (e tooLarge) Error() string { return string(e) }

var errInflated = tooLarge(fmt.Sprintf("the PDF expands to more than %d MiB", maxInflated>>20))

// An allowance is the number of bytes to which the streams of a file may still expand.
type allowance struct {
	left  int64
	until time.Time
}

// take counts the bytes of a stream, or of an array's streams, which the library reads next. It panics if there are too
// many.
func (w *writing) take(v pdf.Value) {
	if v.Kind() == pdf.Array {
		for i := range v.Len() {
			w.take(v.Index(i))
		}
		return
	}
	if v.Kind() != pdf.Stream {
		return
	}
	n, _ := io.Copy(io.Discard, io.LimitReader(v.Reader(), min(w.left, w.ofPage)+1)) // a damaged stream ends there
	if w.left -= n; w.left < 0 {
		panic(errInflated)
	}
	if w.ofPage -= n; w.ofPage < 0 {
		panic(fmt.Sprintf("a page of more than %d MiB", maxOfPage>>20))
	}
}

// tick counts an operator. It panics if the time has elapsed, because nobody is waiting for the result any more.
func (w *writing) tick() {
	if w.ops++; w.ops%someOps == 0 && time.Now().After(w.until) {
		panic(tooLarge("the time is over"))
	}
}

var (
	indirect = regexp.MustCompile(`/(Type|Filter)\s*\d`)
	escaped  = regexp.MustCompile(`#[0-9A-Fa-f]{2}`) // escape sequence in a name
	encoded  = []byte("85")                          // part of the name ASCII85Decode
	// The library allocates tables of these sizes before it reads their contents. A file has at most 8,388,607 objects.
	huge    = regexp.MustCompile(`/(Size|Columns)\s*[+0]*[1-9]\d{7}|/(Index|W)\s*\[[^\]]*[1-9]\d{7}`)
	hugeRow = regexp.MustCompile(`(?m)^\s*0*[1-9]\d{7,}[ \t]+\d+\s*$`) // entry of a table of objects; in an offset, a letter follows
)

// objectStreams returns the size in bytes of the streams that contain objects and the table of objects, because the library reads
// these itself. It returns more than maxInflated if the table itself would be too large. A stream counts, too, if its type is not
// stated in plain text. The streams of an encrypted file cannot be read here.
func objectStreams(data []byte) (sum int64) {
	const word, most = "stream", 4 << 10
	if hugeRow.Match(data) {
		return maxInflated + 1
	}
	for at := 0; sum <= maxInflated; {
		i := bytes.Index(data[at:], []byte(word))
		if i < 0 {
			break
		}
		head := data[max(at, at+i-most) : at+i]
		at += i + len(word)
		if bytes.HasSuffix(head, []byte("end")) {
			continue
		}
		if j := bytes.LastIndex(head, []byte("obj")); j >= 0 {
			head = head[j:]
		}
		head = escaped.ReplaceAllFunc(head, func(b []byte) []byte {
			n, _ := strconv.ParseUint(string(b[1:]), 16, 8)
			return []byte{byte(n)}
		})
		if huge.Match(head) {
			return maxInflated + 1
		}
		hidden := indirect.Match(head)
		if !hidden && !bytes.Contains(head, []byte("ObjStm")) && !bytes.Contains(head, []byte("XRef")) {
			continue
		}
		body := bytes.TrimLeft(data[at:min(at+2, len(data))], "\r\n")
		rest := data[min(at+2, len(data))-len(body):]
		sum += inflated(bytes.NewReader(rest), maxInflated-sum)
		if hidden || bytes.Contains(head, encoded) {
			text, _, _ := bytes.Cut(rest, []byte("~"))
			sum += inflated(ascii85.NewDecoder(bytes.NewReader(text)), max(maxInflated-sum, 0))
		}
	}
	return sum
}

// inflated returns the size in bytes to which a compressed stream expands, or 0 if the stream is not compressed. It stops
// counting shortly after most. A stream may be compressed several times.
func inflated(r io.Reader, most int64) int64 {
	layers := 0
	for b := bufio.NewReader(r); ; layers++ {
		head, _ := b.Peek(2)
		if r = b; len(head) < 2 || head[0]&0xf != 8 || (int(head[0])<<8|int(head[1]))%31 != 0 {
			break
		}
		z, err := zlib.NewReader(b)
		if err != nil {
			break
		}
		b = bufio.NewReader(z)
	}
	if layers == 0 {
		return 0
	}
	n, _ := io.Copy(io.Discard, io.LimitReader(r, most+1))
	return n
}
