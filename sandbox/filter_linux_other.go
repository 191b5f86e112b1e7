//go:build linux && !amd64

package sandbox

// legacyChanges is empty: newer architectures have no older calls.
var legacyChanges []uint32

var legacyModes []modeCall

var legacyOpens []modeCall
