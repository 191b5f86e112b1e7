package canon

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

type small struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Done  bool   `json:"done"`
}

type page struct {
	Title string `json:"title"`
	Text  string `json:"text"`
	Words int    `json:"words"`
}

type order struct {
	ID       string            `json:"id"`
	Total    float64           `json:"total"`
	Items    []small           `json:"items"`
	Labels   map[string]string `json:"labels"`
	Customer *page             `json:"customer,omitempty"`
	Extra    any               `json:"extra"`
}

var (
	smallValue = small{"parse the report", 1234, true}
	pageValue  = page{"a page", strings.Repeat("All this is plain text, as most text is. ", 25), 200}
	linesValue = page{"a page", strings.Repeat("A line of a \"program\"\n\tand its next\n", 28), 200}
	wideValue  = page{"a page", strings.Repeat("Ein Satz über Größe, с русским и 日本語. ", 22), 200}
	orderValue = order{
		ID: "o-17", Total: 99.5, Items: []small{smallValue, smallValue, smallValue},
		Labels: map[string]string{"b": "2", "a": "1", "c": "3"}, Customer: &page{Title: "x"},
		Extra: map[string]any{"n": 1.5, "list": []any{"a", true, nil}},
	}
)

func BenchmarkAppend(b *testing.B) {
	benchmarkValue(b, "small", &smallValue)
	benchmarkValue(b, "page-1KB", &pageValue)
	benchmarkValue(b, "lines-1KB", &linesValue)
	benchmarkValue(b, "wide-1KB", &wideValue)
	benchmarkValue(b, "order", &orderValue)
}

func benchmarkValue[T any](b *testing.B, name string, v *T) {
	e, err := For(reflect.TypeFor[T]())
	if err != nil {
		b.Fatal(err)
	}
	dst, err := e.Append(nil, unsafe.Pointer(v))
	if err != nil {
		b.Fatal(err)
	}
	size := int64(len(dst))
	b.Run(name+"/canon", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			dst, _ = e.Append(dst[:0], unsafe.Pointer(v))
		}
	})
	b.Run(name+"/encoding-json", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(v)
		}
	})
	text, _ := json.Marshal(v)
	written, _ := AppendJSON(nil, text)
	for _, c := range []struct {
		name string
		text []byte
	}{{"text", text}, {"canonical-text", written}} {
		b.Run(name+"/"+c.name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				dst, _ = AppendJSON(dst[:0], c.text)
			}
		})
	}
}

func BenchmarkAppendAny(b *testing.B) {
	var v any
	text, _ := json.Marshal(orderValue)
	if err := json.Unmarshal(text, &v); err != nil {
		b.Fatal(err)
	}
	var dst []byte
	b.Run("canon", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dst, _ = Append(dst[:0], v)
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(v)
		}
	})
}
