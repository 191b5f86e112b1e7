package plan

import (
	"strings"
	"unicode/utf8"

	"github.com/stonelayer/stone/internal/edn"
)

// This file writes data, as JSON or EDN.

// constant writes the constant data of t. In JSON, the result is canonical.
func (w *printer) constant(t *template, words bool) {
	if w.json {
		w.misread(t.at.value, words)
		w.text = append(w.text, t.constant...)
		return
	}
	w.data(t.constant)
}

// misread sets an error if v, written as JSON, would be read as a slot.
func (w *printer) misread(v edn.Value, words bool) {
	switch v.Kind() {
	case edn.KindString:
		name, ok := strings.CutPrefix(v.Text(), ":")
		w.fail(errSlot, words && ok && isKeyword(name))
	case edn.KindMap:
		for k, e := range v.Entries() {
			w.fail(errSlot, isSlotKey(k.Text()) || v.Len() == 1 && strings.TrimPrefix(k.Text(), ":") == celKey && e.Kind() == edn.KindString)
			w.misread(e, words)
		}
	case edn.KindVector, edn.KindList, edn.KindSet:
		for _, e := range v.Elements() {
			w.misread(e, false)
		}
	}
}

// data writes the first value in src as EDN, and returns the rest of src. The values in src are canonical JSON.
func (w *printer) data(src []byte) []byte {
	switch c := src[0]; c {
	case '"':
		n := quoted(src)
		w.text = append(w.text, src[:n]...)
		return src[n:]
	case '{', '[':
		w.open(c)
		for src = src[1:]; src[0] != c+2; { // the closing bracket
			if src[0] == ',' {
				src = src[1:]
			}
			w.next()
			if c == '{' {
				n := quoted(src)
				w.dataKey(src[:n])
				w.colon()
				src = src[n+1:]
			}
			src = w.data(src)
		}
		w.close(c + 2)
		return src[1:]
	case 'n':
		w.text = append(w.text, "nil"...)
		return src[len("null"):]
	}
	n := 0
	for n < len(src) && !strings.ContainsRune(",]}", rune(src[n])) {
		n++
	}
	w.text = append(w.text, src[:n]...)
	if number := string(src[:n]); strings.ContainsAny(number, ".eE") && number[0] != 't' && number[0] != 'f' {
		v, err := edn.FromJSON([]byte(number), edn.Limits{})
		if err == nil && v.Kind() == edn.KindDecimal {
			w.text = append(w.text, 'M')
		}
	}
	return src[n:]
}

func (w *printer) dataKey(key []byte) {
	name := key[1 : len(key)-1]
	if utf8.Valid(name) && !strings.Contains(string(name), `\`) && !isSlotKey(string(name)) && string(name) != celKey && isKeyword(string(name)) {
		w.text = append(append(w.text, ':'), name...)
		return
	}
	w.text = append(w.text, key...)
}

// quoted returns the length in bytes of the JSON string at the start of src, including its quotes.
func quoted(src []byte) int {
	for i := 1; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(src)
}
