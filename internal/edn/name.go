package edn

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class says what a byte can be in a text.
type class uint8

const (
	blank   class = 1 << iota // white space: a comma, too
	endsTok                   // a token ends before it
	inName                    // may stand in a name
)

// classes has no entry for what is only refused, such as @ and control
// characters: they become part of a token, so that a message shows all of it.
var classes = func() (table [256]class) {
	for _, c := range " \t\n\v\f\r," {
		table[c] = blank | endsTok
	}
	for _, c := range `()[]{}";\^` {
		table[c] = endsTok
	}
	for c := range table {
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.ContainsRune(".*+!-_?$%&=<>:#", rune(c)) && c < 0x80 {
			table[c] = inName
		}
	}
	return table
}()

// constant returns the value that a word stands for rather than a symbol.
func constant(word string) (v Value, ok bool) {
	switch word {
	case "nil":
		return Value{}, true
	case "true":
		return Bool(true), true
	case "false":
		return Bool(false), true
	}
	return Value{}, false
}

// checkSymbol returns what was expected of a symbol that has not that name, or
// nothing when it is fine.
func checkSymbol(name string) string {
	if name == "/" {
		return ""
	}
	return checkKeyword(name)
}

// checkKeyword is checkSymbol for keywords, given without colon.
func checkKeyword(name string) string {
	prefix, rest, slash := strings.Cut(name, "/")
	if !slash {
		return checkPart(name)
	}
	if strings.Contains(rest, "/") {
		return "expected one / at most"
	}
	if prefix == "" || rest == "" {
		return "expected a name on both sides of /"
	}
	if reason := checkPart(prefix); reason != "" {
		return reason
	}
	return checkPart(rest)
}

// checkTag holds a tag to the rules of symbols and one more.
func checkTag(tag string) string {
	if first, _ := utf8.DecodeRuneInString(tag); !unicode.IsLetter(first) {
		return "expected a tag to begin with a letter"
	}
	return checkSymbol(tag)
}

// checkPart checks a name without /.
func checkPart(name string) string {
	if name == "" {
		return "expected a name"
	}
	if reason := checkFirst(name); reason != "" {
		return reason
	}
	plain := 0 // how much of it is fine, byte by byte: most often all
	for plain < len(name) && classes[name[plain]]&inName != 0 {
		plain++
	}
	for i, r := range name[plain:] {
		if r < 0x80 && classes[r]&inName == 0 || r >= 0x80 && !wordRune(r) {
			i += plain
			return "expected a name of letters, digits and . * + ! - _ ? $ % & = < > : #, found " + quote(name[i:i+len(string(r))])
		}
	}
	return ""
}

func checkFirst(name string) string {
	first, second := name[0], byte(0)
	if len(name) > 1 {
		second = name[1]
	}
	switch {
	case '0' <= first && first <= '9':
		return "expected a name that does not begin with a digit"
	case first == ':' || first == '#':
		return "expected a name that does not begin with " + name[:1]
	case (first == '-' || first == '+' || first == '.') && '0' <= second && second <= '9':
		return "expected no digit after the " + name[:1] + " that begins a name"
	}
	return ""
}

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}
