package schema_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/stonelayer/stone/schema"
)

type line struct {
	SKU   string  `json:"sku"`
	Name  string  `json:"name"`
	Count int     `json:"count"`
	Price float64 `json:"price"`
	Color string  `json:"color" enum:"red,green,blue"`
}

type invoice struct {
	ID    string            `json:"id"`
	Lines []line            `json:"lines"`
	Tags  map[string]string `json:"tags,omitempty"`
}

func kilobyte(b testing.TB) (*schema.Schema, []byte) {
	v := invoice{ID: "2026-0001", Tags: map[string]string{"a": "b"}}
	for range 11 {
		v.Lines = append(v.Lines, line{"SKU-0001", "a thing with a name", 3, 12.5, "red"})
	}
	text, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	s, err := schema.For[invoice]()
	if err != nil {
		b.Fatal(err)
	}
	return s, text
}

func BenchmarkValidate(b *testing.B) {
	s, text := kilobyte(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(context.Background(), text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidateSmall(b *testing.B) {
	s, err := schema.For[line]()
	if err != nil {
		b.Fatal(err)
	}
	text := []byte(`{"sku":"SKU-0001","name":"a thing","count":3,"price":12.5,"color":"red"}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(context.Background(), text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode is the floor of BenchmarkValidate: the same text into values with exact numbers.
func BenchmarkDecode(b *testing.B) {
	_, text := kilobyte(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompatible(b *testing.B) {
	p, _ := kilobyte(b)
	b.Run("cached", func(b *testing.B) {
		c := parse(b, p.String())
		b.ReportAllocs()
		for b.Loop() {
			schema.Compatible(p, c)
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			c := parse(b, p.String())
			b.StartTimer()
			schema.Compatible(p, c)
		}
	})
}

func BenchmarkFor(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		schema.For[invoice]()
	}
}

func BenchmarkAt(b *testing.B) {
	s, _ := kilobyte(b)
	b.ReportAllocs()
	for b.Loop() {
		s.At("lines", "0", "price")
	}
}

func BenchmarkParse(b *testing.B) {
	s, _ := kilobyte(b)
	text := s.JSON()
	for b.Loop() {
		if _, err := schema.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
