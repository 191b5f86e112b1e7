package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxName is the length of a tool's name that every provider accepts.
const maxName = 64

// offeredNames returns the names of the tools for the model. They depend only on the
// server's whole list, and are unique: a changed name that another tool has, or would
// get, ends in a hash.
func offeredNames(prefix string, all []*sdk.Tool) []string {
	taken := map[string]int{}
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = plainName(prefix + t.Name)
		taken[out[i]]++
	}
	for i, t := range all {
		full := prefix + t.Name
		if len(out[i]) > maxName || taken[out[i]] > 1 && out[i] != full {
			out[i] = hashed(out[i], full)
		}
	}
	return out
}

// plainName replaces what providers refuse in a name.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

func hashed(name, full string) string {
	sum := sha256.Sum256([]byte(full))
	end := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(end))] + end
}
