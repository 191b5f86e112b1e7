//go:build linux && !amd64

package sandbox

// legacyChanges is empty, because newer architectures do not have the older calls.
var legacyChanges []uint32

var legacyModes []modeCall

var legacyOpens []modeCall
