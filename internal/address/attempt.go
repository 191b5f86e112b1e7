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

// TurnStep returns the name of the step of the n-th turn of an agent, from 1.
func TurnStep(n int) string { return "turn-" + strconv.Itoa(n) }

// ToolStep returns the name of the step of the i-th call of a tool in a turn, both from 1.
func ToolStep(turn, i int) string { return "tool-" + strconv.Itoa(turn) + "-" + strconv.Itoa(i) }
