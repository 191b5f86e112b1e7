package edn

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is a bit set of the roles that a byte can have in EDN text.
type class uint8

const (
	blank   class = 1 << iota // white space, including commas
	endsTok                   // ends a token
	inName                    // allowed in names
)

// classes has no entry for characters that are always refused, such as @ and control characters. These become part of a token, so
// that an error message shows the whole token.
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

// constant returns the Value for the token nil, true or false.
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

// checkSymbol returns the rule that a symbol's name violates, or "" if the name is valid.
func checkSymbol(name string) string {
	if name == "/" {
		return ""
	}
	return checkKeyword(name)
}

// checkKeyword is like checkSymbol, for the name of a keyword without its colon.
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

// checkTag returns the rule that a tag violates, or "" if the tag is valid. Unlike a symbol, a tag must begin with a letter.
func checkTag(tag string) string {
	if first, _ := utf8.DecodeRuneInString(tag); !unicode.IsLetter(first) {
		return "expected a tag to begin with a letter"
	}
	return checkSymbol(tag)
}

// checkPart returns the rule that a name without a slash violates, or "" if the name is valid.
func checkPart(name string) string {
	if name == "" {
		return "expected a name"
	}
	if reason := checkFirst(name); reason != "" {
		return reason
	}
	plain := 0 // length of the prefix that can be checked byte by byte, usually the whole name
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
