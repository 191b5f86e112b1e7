package structured_test

import (
	"testing"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

type report struct {
	Title, Summary, Author string
	Score                  uint8
	Tags                   []string `json:"tags,omitempty"`
	Lines                  []struct {
		File, Text string
		Line       int
		Kind       string `enum:"bug,style"`
	}
}

// BenchmarkSchema projects a schema of eleven properties, once for each request.
func BenchmarkSchema(b *testing.B) {
	s, err := schema.For[report]()
	if err != nil {
		b.Fatal(err)
	}
	f := structured.Of("report", s).Format()
	for b.Loop() {
		if structured.OpenAI.Schema(f) == nil {
			b.Fatal("cannot be enforced")
		}
	}
}

// BenchmarkRead reads an answer in strict form, in which null stands for what is absent.
func BenchmarkRead(b *testing.B) {
	s, err := schema.For[report]()
	if err != nil {
		b.Fatal(err)
	}
	form := structured.Of("report", s)
	reply := &llm.Reply{Text: `{"Title":"a","Summary":"b","Author":"c","Score":3,"tags":[],"Lines":[{"File":"a","Text":"b","Line":1,"Kind":"bug"}]}`}
	for b.Loop() {
		if _, misfit := form.Read(b.Context(), reply); misfit != nil {
			b.Fatal(misfit.Err)
		}
	}
}
