package transport

import "strings"

// IsHeader reports whether a text can be the name of a header: a token of RFC 9110, section 5.6.2.
func IsHeader(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}
