package edn

import "bytes"

// ReadEither reads one value from a text that is EDN or JSON. A text that begins like an
// object of JSON, with a string and a colon (`{"a":`), within any number of arrays, is
// read as JSON. Any other text is read as EDN, which also covers the other values of
// JSON, except that their strings are not names. Errors are of type [*Error] and refer to
// the chosen notation.
func ReadEither(data []byte, limits Limits) (Value, error) {
	if beginsAsJSON(data) {
		return FromJSON(data, limits)
	}
	return Read(data, limits)
}

// beginsAsJSON examines at most the first key. In EDN, a map of names has no strings for
// keys, so a string and a colon are proof.
func beginsAsJSON(text []byte) bool {
	const white = " \t\r\n"
	text, ok := bytes.CutPrefix(bytes.TrimLeft(text, white+"["), []byte("{"))
	if !ok {
		return false
	}
	text, ok = bytes.CutPrefix(bytes.TrimLeft(text, white), []byte(`"`))
	if !ok {
		return false
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return bytes.HasPrefix(bytes.TrimLeft(text[i+1:], white), []byte(":"))
		}
	}
	return false
}
