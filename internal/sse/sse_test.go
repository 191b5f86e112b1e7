package sse

import (
	"fmt"
	"strings"
	"testing"
)

// read feeds the stream in pieces of n bytes and renders its events. The pieces share one
// buffer, as the pieces of a real caller do.
func read(stream string, n int) string {
	var r Reader
	var b strings.Builder
	show := func(ev Event) { fmt.Fprintf(&b, "[%s|%s]", ev.Name, ev.Data) }
	buf := make([]byte, max(n, 1))
	for len(stream) > 0 {
		k := copy(buf, stream)
		stream = stream[k:]
		r.Feed(buf[:k])
		for {
			ev, ok, err := r.Next()
			if err != nil {
				return b.String() + "!" + err.Error()
			}
			if !ok {
				break
			}
			show(ev)
		}
		clear(buf)
	}
	if ev, ok := r.Flush(); ok {
		show(ev)
	}
	return b.String()
}

func TestReader(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"one", "data: a\n\n", "[|a]"},
		{"two", "data: a\n\ndata: b\n\n", "[|a][|b]"},
		{"name", "event: x\ndata: a\n\ndata: b\n\n", "[x|a][|b]"},
		{"name after data", "data: a\nevent: x\n\n", "[x|a]"},
		{"several data lines", "data: a\ndata: b\ndata: c\n\n", "[|a\nb\nc]"},
		{"empty data lines", "data\ndata:\ndata: x\n\n", "[|\n\nx]"},
		{"empty data", "data:\n\n", "[|]"},
		{"no space", "data:a\n\n", "[|a]"},
		{"two spaces", "data:  a\n\n", "[| a]"},
		{"crlf", "event: x\r\ndata: a\r\ndata: b\r\n\r\n", "[x|a\nb]"},
		{"cr", "event: x\rdata: a\r\rdata: b\r\r", "[x|a][|b]"},
		{"mixed ends", "data: a\r\n\ndata: b\r\r\ndata: c\n\r\n", "[|a][|b][|c]"},
		{"comments", ": hi\n\n: ho\ndata: a\n: between\ndata: b\n\n:\n\n", "[|a\nb]"},
		{"unknown fields", "id: 7\nretry: 1\nfoo: bar\nfoo\ndata: a\n\n", "[|a]"},
		{"event without data", "event: x\n\ndata: a\n\n", "[|a]"},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", "[|a]"},
		{"end without blank line", "data: a\n\ndata: b\n", "[|a][|b]"},
		{"end without line end", "data: a\n\ndata: b", "[|a][|b]"},
		{"end after name", "data: a\n\nevent: x", "[|a]"},
		{"utf-8", "data: ä→🌟\n\n", "[|ä→🌟]"},
		{"colon in data", "data: {\"a\":1}\n\n", `[|{"a":1}]`},
		{"nothing", "", ""},
		{"blank", "\n\r\n\r", ""},
	} {
		for n := 1; n <= len(c.stream)+1; n++ {
			if got := read(c.stream, n); got != c.want {
				t.Errorf("%s, pieces of %d bytes: got %q, want %q", c.name, n, got, c.want)
			}
		}
	}
}

func TestReaderTooLong(t *testing.T) {
	if got := read("data: "+strings.Repeat("x", MaxEvent+1), 1<<20); !strings.Contains(got, ErrTooLong.Error()) {
		t.Errorf("got %q, want %v", got, ErrTooLong)
	}
}

// FuzzReader compares every cut of a stream with the uncut stream, and that with a simple
// reader.
func FuzzReader(f *testing.F) {
	f.Add("event: x\r\ndata: a\rdata: b\n\n: c\n\ndata", 3)
	f.Add("data: a\n\r\ndata:b\r\r\n\xef\xbb\xbf", 1)
	f.Fuzz(func(t *testing.T, stream string, n int) {
		n = max(1, min(n, 4096))
		want := simple(stream)
		for _, size := range []int{n, len(stream)} {
			if got := read(stream, size); got != want {
				t.Errorf("pieces of %d bytes of %q: got %q, want %q", size, stream, got, want)
			}
		}
	})
}

func simple(stream string) string {
	stream = strings.ReplaceAll(strings.TrimPrefix(stream, "\xef\xbb\xbf"), "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	var b, name string
	var data []string
	lines := append(strings.Split(stream, "\n"), "")
	for _, line := range lines {
		if line == "" {
			if data != nil {
				b += fmt.Sprintf("[%s|%s]", name, strings.Join(data, "\n"))
			}
			name, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			name = value
		}
	}
	return b
}

func BenchmarkReader(b *testing.B) {
	stream := []byte(strings.Repeat("data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"}}]}\n\n", 1000))
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		var r Reader
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), 4096)
			r.Feed(rest[:n])
			rest = rest[n:]
			for {
				if _, ok, _ := r.Next(); !ok {
					break
				}
			}
		}
	}
}

// An id holds when its event is complete, also if that has no data, and until there is
// another one.
func TestLastID(t *testing.T) {
	var r Reader
	for _, tt := range []struct{ piece, want string }{
		{"id: 7\n", ""}, {"\n", "7"}, {"data: x\n\n", "7"}, {"id: 8\ndata: y\n", "7"}, {"\n", "8"}, {"id: 9\x00\n\n", "8"}, {"id\n\n", ""},
	} {
		r.Feed([]byte(tt.piece))
		for {
			_, ok, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
		}
		if got := r.LastID(); got != tt.want {
			t.Errorf("after %q: %q, want %q", tt.piece, got, tt.want)
		}
	}
}
