package edn_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stonelayer/stone/internal/edn"
)

// typicalPlan is the case files of calls in one vector, or a similar plan if they are
// missing.
func typicalPlan() []byte {
	files := peerCases()
	if len(files) == 0 {
		node := []byte(`{:op :call :intent :text/respond :input {:prompt "Say why." :n [1 2.5 nil]} :dispatch {:candidates [:llm/a :llm/b]} :as :answer}` + "\n ")
		files = [][]byte{bytes.Repeat(node, 400)}
	}
	return slices.Concat([]byte("["), bytes.Join(files, []byte("\n")), []byte("]"))
}

func BenchmarkRead(b *testing.B) {
	data := typicalPlan()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := edn.Read(data, edn.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	data := typicalPlan()
	var out []byte
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		// It is read each time, because the order of entries is cached.
		b.StopTimer()
		v := read(b, string(data))
		b.StartTimer()
		out = v.Append(out[:0])
	}
}

func BenchmarkFromJSON(b *testing.B) {
	data, err := edn.ToJSON(read(b, `[{"op" "call" "intent" "text/respond" "input" {"prompt" "Say why." "n" [1 2.5 nil]} "as" "answer"}]`))
	if err != nil {
		b.Fatal(err)
	}
	data = slices.Concat([]byte("["), bytes.Repeat(append(data, ','), 200), data, []byte("]"))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := edn.FromJSON(data, edn.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkField(b *testing.B) {
	v := read(b, `{:op :call :intent :text/respond :input {} :dispatch {} :as :answer}`)
	for b.Loop() {
		if _, ok := v.Field("as"); !ok {
			b.Fatal("no field :as")
		}
	}
}
