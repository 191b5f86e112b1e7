package edn

import "bytes"

// ReadEither reads one value from a text that is EDN or JSON. It is read as JSON if
// it begins as an object of JSON does, with a string and a colon (`{"a":`), however
// many arrays stand around it; as EDN otherwise, which also reads the other values
// of JSON: only their strings are no names then. Errors are of type [*Error] and
// speak of the notation that was chosen.
func ReadEither(data []byte, limits Limits) (Value, error) {
	if beginsAsJSON(data) {
		return FromJSON(data, limits)
	}
	return Read(data, limits)
}

// beginsAsJSON looks at no more than the first key. A map of names has no strings
// for keys in EDN, so a string and a colon after it tell.
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
