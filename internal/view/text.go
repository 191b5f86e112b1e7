package view

import (
	"strings"
	"unicode/utf8"
)

// IsText reports whether every journal can look for s.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
