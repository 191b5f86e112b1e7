package address

import (
	"regexp"
	"strconv"
	"strings"
)

// AttemptStep returns the step name of a capability's n-th attempt, counted from 1. Slashes in the capability's ID are replaced,
// because they would have to be escaped.
func AttemptStep(capability string, n int) string {
	return strings.ReplaceAll(capability, "/", "|") + " " + strconv.Itoa(n)
}

// Attempts returns path without its attempt numbers, which is the same for all attempts, and the attempt numbers, one for each
// segment of the path.
func Attempts(path string) (place string, numbers []int) {
	parts := strings.Split(path, "/")
	numbers = make([]int, len(parts))
	for i, part := range parts {
		before, after, found := strings.Cut(part, "~")
		if numbers[i] = 1; found {
			digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
			numbers[i], _ = strconv.Atoi(after[:digits])
			parts[i] = before + after[digits:]
		}
	}
	return strings.Join(parts, "/"), numbers
}

// InAttempts returns the path from which Attempts made the given path and numbers.
func InAttempts(place string, numbers []int) string {
	parts := strings.Split(place, "/")
	for i, n := range numbers {
		if n > 1 {
			parts[i] += "~" + strconv.Itoa(n)
		}
	}
	return strings.Join(parts, "/")
}

// RepairStep returns the step name of the k-th repair after an attempt, counted from 1.
func RepairStep(attempt string, k int) string { return attempt + " repair " + strconv.Itoa(k) }

// TurnStep returns the step name of an agent's n-th turn, counted from 1.
func TurnStep(n int) string { return "turn-" + strconv.Itoa(n) }

// ToolStep returns the step name of the i-th tool call in a turn. Both numbers count from 1.
func ToolStep(turn, i int) string { return "tool-" + strconv.Itoa(turn) + "-" + strconv.Itoa(i) }

// attemptName matches the names that AttemptStep and RepairStep return for a capability whose ID contains slashes.
var attemptName = regexp.MustCompile(`^[^/]*\|[^/]* [0-9]+( repair [0-9]+)?$`)

// Readable returns a human-readable form of an address or a part of an address: names are unescaped, and the IDs of capabilities
// have their slashes. The result cannot be parsed.
func Readable(path string) string {
	if !strings.ContainsAny(path, "%|") {
		return path
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		end := strings.IndexAny(s, "#[@~")
		if end < 0 {
			end = len(s)
		}
		if attemptName.MatchString(s[:end]) {
			s = strings.ReplaceAll(s[:end], "|", "/") + s[end:]
		}
		segments[i] = Unescape(s)
	}
	return strings.Join(segments, "/")
}
