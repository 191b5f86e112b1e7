package cli

import (
	"strings"
	"testing"
)

// Without the part, the error names it.
func TestEvidenceWithoutPart(t *testing.T) {
	for _, line := range []string{"verify some.evidence", "export last --as evidence"} {
		var said strings.Builder
		code := Run(t.Context(), Config{Pipeline: FromArgument, Name: "stone", Args: strings.Fields(line), Stderr: &said})
		if want := "Error: this program reads and writes no evidence: give cli.Main the part of package github.com/stonelayer/stone/x/evidence\n"; code != Usage || said.String() != want {
			t.Errorf("%s: code %d, %q, want %q", line, code, said.String(), want)
		}
	}
}
