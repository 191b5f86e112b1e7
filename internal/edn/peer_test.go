package edn_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"pgregory.net/rapid"
)

// peerTexts are texts that Clojure reads like this package, except, for the given reason,
// if differs is set.
var peerTexts = []struct{ text, differs string }{
	{`[nil true false 0 -0 +5 42N 9223372036854775808 -9223372036854775809]`, ""},
	{`[1.5 -0.0 1e10 1E-9 5e-324 ##Inf ##-Inf]`, ""},
	{`[1M -1.50M 0.000M 12.5e-3M 1e30M]`, ""},
	{`[\a \newline \return \space \tab \formfeed \backspace \u0041 \o101 \u \o \, \( \" \\ \é]`, ""},
	{`["" "a\t\n\r\b\f\\\"" "\u00e9\101\0\377" "😀" "\ud83d\ude00"]`, ""},
	{"\"two\nlines\"", ""},
	{`[a a/b a.b/c-d * + - . -a .a +.5 / a#b a:b <= nil? éa %x $y &z _]`, ""},
	{`[:a :a/b :nil :allow-failure? :a1 :- :a.b/c :+]`, ""},
	{`{:b 1 :a 2, "c" 3, 4 5, nil 6, [1] 7, #{} 8}`, ""},
	{`[1[2]"3"(4)5 #{6}{7 8}]`, ""},
	{`[1 #_ 2 #_#_ 3 4 5 #_(a)]`, ""},
	{`[#a/b {:x 1} #a #b #_ c 1]`, ""},
	{`#:a{:b 1 :c/d 2 :_/e 3 f 4 "g" 5 :h {:i 6}}`, ""},
	{`[#inst "1985-04-12T23:20:50.52Z" #inst "2000-01-01T01:00:00.000+01:00" #uuid "F81D4FAE-7dec-11d0-a765-00a0c91e6bf6"]`, ""},
	{"[1 ; comment\n 2]", ""},
	{`#{1 1.0 1M "1" \1 :1a}`, "a keyword begins like a symbol, which has no digit there"},
	{`#{1 1N}`, ""},
	{`#{(1 2) [1 2]}`, ""},
	{`#{1.0M 1.00M}`, ""},
	{`#{0.0 -0.0}`, ""},
	{`{:a 1 :a 2}`, ""},
	{`{[1] 1 (1) 2}`, ""},
	{`{:a}`, ""},
	{`[1`, ""},
	{`[1)`, ""},
	{`)`, ""},
	{`"a`, ""},
	{`"\q"`, ""},
	{`"\400"`, ""},
	{`\ab`, ""},
	{`\ud800`, ""},
	{`:`, ""},
	{`::a`, ""},
	{`:a/`, ""},
	{`/a`, ""},
	{`a/1`, ""},
	{`1a`, ""},
	{`1.5N`, ""},
	{`08`, ""},
	{`#inst "1985-02-30T00:00:00Z"`, ""},
	{`#inst 5`, ""},
	{`#uuid "x"`, ""},
	{`#:a/b{:c 1}`, ""},
	{`#::a{:c 1}`, ""},
	{`#:a{:b 1 :a/b 2}`, ""},
	{`##Infinity`, ""},
	{`#"regex"`, ""},
	{`#-a 1`, ""},
	{`1/2`, "EDN has no ratios"},
	{`010`, "no integer but 0 begins with 0"},
	{`0x1F`, "EDN has no hexadecimal integers"},
	{`2r101`, "EDN has no radix"},
	{`1.`, "digits follow the point"},
	{`1e400`, "a float is not rounded to infinity"},
	{`:1`, "a keyword begins like a symbol, which has no digit there"},
	{`'a`, "a name has no quotes"},
	{`@a`, ""},
	{`a//`, "a name has one / at most"},
	{`:a/b/c`, "a name has one / at most"},
	{`^:m []`, "EDN has no metadata"},
	{`#inst "1985"`, "RFC 3339 has no part of a date"},
	{`#uuid "1-1-1-1-1"`, "a UUID has 32 digits"},
	{`\😀`, "a character is a code point, not half of a surrogate pair"},
	{`"\ud83d"`, "half of a surrogate pair is no text"},
}

// clojureScript answers for each pair of a text and this package's output for it:
// Clojure's output for the text, nil when it refuses it, and whether it reads both as
// equal.
const clojureScript = `
(require '[clojure.edn :as edn])
(defn one [text]
  (try (let [all (edn/read-string {:default tagged-literal} (str "[" text "\n]"))]
         (when (= 1 (count all)) all))
       (catch Throwable _ nil)))
(prn (vec (for [[text ours] (edn/read-string (slurp *in*))]
            (let [all (one text)]
              [(when all (pr-str (first all))) (= all (one ours))]))))`

// TestClojure compares with clojure.edn, on the table above and on generated
// values, in both directions.
func TestClojure(t *testing.T) {
	clojure := need.Program(t, "clojure")
	type question struct{ text, differs string }
	var questions []question
	for _, test := range peerTexts {
		questions = append(questions, question(test))
	}
	for seed := range 300 {
		v := values(3, true).Example(seed)
		questions = append(questions, question{v.String(), ""}, question{string(edn.Format(v)), ""})
	}
	for _, data := range peerCases() {
		questions = append(questions, question{string(data), ""})
	}
	var pairs []edn.Value
	for _, q := range questions {
		ours := ""
		if v, err := edn.Read([]byte(q.text), edn.Limits{}); err == nil {
			ours = v.String()
		}
		pairs = append(pairs, edn.Vector(edn.String(q.text), edn.String(ours)))
	}
	script := filepath.Join(t.TempDir(), "read.clj")
	if err := os.WriteFile(script, []byte(clojureScript), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(clojure, script)
	command.Stdin = bytes.NewReader(edn.Vector(pairs...).Append(nil))
	output, err := command.Output()
	if err != nil {
		t.Fatalf("clojure: %v", err)
	}
	answers := read(t, string(output))
	if answers.Len() != len(questions) {
		t.Fatalf("clojure gave %d answers to %d questions", answers.Len(), len(questions))
	}
	for i, answer := range answers.Elements() {
		q := questions[i]
		same, _ := answer.At(1).Bool()
		if agree := agrees(q.text, answer.At(0), same); agree == (q.differs != "") {
			t.Errorf("%q: clojure reads %v, agreement is %t", q.text, answer.At(0), agree)
		}
	}
}

// agrees reports whether a peer that printed a text as theirs (nil: refused it) reads it
// as this package does.
func agrees(text string, theirs edn.Value, same bool) bool {
	v, err := edn.Read([]byte(text), edn.Limits{})
	if err != nil || theirs.IsNil() {
		return err != nil && theirs.IsNil()
	}
	w, err := edn.Read([]byte(theirs.Text()), edn.Limits{})
	return err == nil && v.Equal(w) && same
}

// peerCases returns the case files of calls, if they exist.
func peerCases() (files [][]byte) {
	paths, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "spec", "cases", "calls", "*.edn"))
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil {
			files = append(files, data)
		}
	}
	return files
}

const nodeScript = `
const {parseEDNString, toEDNString} = require(process.argv[1]);
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map(text => toEDNString(parseEDNString(text)))));`

// TestEDNData compares with npm's edn-data, except for what that changes: it reads all numbers as JavaScript numbers and writes
// special characters raw.
func TestEDNData(t *testing.T) {
	path, node := peer.Module(t, "edn-data"), need.Program(t, "node")
	var texts []string
	for seed := range 500 {
		texts = append(texts, portable(3).Example(seed).String())
	}
	question, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(node, "-e", nodeScript, path)
	command.Stdin = bytes.NewReader(question)
	output, err := command.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var answers []string
	if err := json.Unmarshal(output, &answers); err != nil || len(answers) != len(texts) {
		t.Fatalf("edn-data gave %d answers to %d questions: %v", len(answers), len(texts), err)
	}
	for i, text := range texts {
		if !agrees(text, edn.String(answers[i]), true) {
			t.Errorf("edn-data reads %s as %s", text, answers[i])
		}
	}
}

// portable draws values that JavaScript also has.
func portable(depth int) *rapid.Generator[edn.Value] {
	name := rapid.StringMatching(`[a-z][a-z*!?-]{0,5}(/[a-z][a-z0-9-]{0,3})?`).Filter(legal)
	scalars := []*rapid.Generator[edn.Value]{
		rapid.Just(edn.Value{}),
		rapid.Map(rapid.Bool(), edn.Bool),
		rapid.Map(rapid.Int64Range(-1<<53, 1<<53), edn.Int),
		rapid.Map(rapid.Int64Range(-1000, 1000), func(n int64) edn.Value { return edn.Float(float64(n) + 0.5) }),
		rapid.Map(rapid.StringOf(rapid.RuneFrom([]rune("ab \n\t\\\"é😀(;"))), edn.String),
		rapid.Map(rapid.RuneFrom([]rune("aZé")), edn.Char),
		rapid.Map(name, func(s string) edn.Value { return must(edn.Symbol(s)) }),
		rapid.Map(name, func(s string) edn.Value { return must(edn.Keyword(s)) }),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	items := rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[edn.Value] { return portable(depth - 1) }), 0, 8)
	return rapid.OneOf(append(scalars,
		rapid.Map(items, func(items []edn.Value) edn.Value { return edn.List(items...) }),
		rapid.Map(items, func(items []edn.Value) edn.Value { return edn.Vector(items...) }),
		rapid.Map(items, func(items []edn.Value) edn.Value { return must(edn.Set(distinct(items)...)) }),
		rapid.Map(items, func(items []edn.Value) edn.Value {
			var entries []edn.Value
			for i, key := range distinct(items) {
				entries = append(entries, key, edn.Int(int64(i)))
			}
			return must(edn.Map(entries...))
		}),
	)...)
}
