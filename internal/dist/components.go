package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"runtime/debug"
	"strings"
)

// component is a module in CycloneDX 1.6 format.
type component struct {
	Ref     string `json:"bom-ref"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	URL     string `json:"purl,omitempty"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// components returns the list of a binary's modules. The list contains neither a time nor a serial number, so it is the same for
// every build.
func components(info *debug.BuildInfo, sum [32]byte) ([]byte, error) {
	program := component{Type: "application", Name: info.Path, Version: info.Main.Version, Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}}
	program.URL = purl(info.Main.Path, info.Main.Version)
	program.Ref = program.URL
	std := component{Type: "library", Name: "std", Version: info.GoVersion, URL: purl("std", strings.TrimPrefix(info.GoVersion, "go"))}
	std.Ref = std.URL
	parts := []component{std}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component{Type: "library", Name: m.Path, Version: m.Version, URL: purl(m.Path, m.Version)}
		if text, ok := strings.CutPrefix(m.Sum, "h1:"); ok { // SHA-256 of the module's files, as in go.sum
			sum, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return nil, err
			}
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
		}
		c.Ref = c.URL
		parts = append(parts, c)
	}
	refs := []string{}
	for _, c := range parts {
		refs = append(refs, c.Ref)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Format     string         `json:"bomFormat"`
		Spec       string         `json:"specVersion"`
		Version    int            `json:"version"`
		Metadata   map[string]any `json:"metadata"`
		Components []component    `json:"components"`
		Depends    []dependency   `json:"dependencies"`
	}{"CycloneDX", "1.6", 1, map[string]any{"component": program}, parts, []dependency{{program.Ref, refs}}})
	return out.Bytes(), err
}

// purl returns the package URL of a module.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.NewReplacer("+", "%2B", "(", "%28", ")", "%29").Replace(version)
}
