package address

import (
	"strconv"
	"strings"
)

// AttemptStep returns the name of the step of the n-th attempt of a capability, from 1. A slash in the id would have to
// be escaped.
func AttemptStep(capability string, n int) string {
	return strings.ReplaceAll(capability, "/", "|") + " " + strconv.Itoa(n)
}

// RepairStep returns the name of the step of the k-th repair of the answer of an attempt, from 1.
func RepairStep(attempt string, k int) string { return attempt + " repair " + strconv.Itoa(k) }
