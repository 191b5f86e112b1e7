package journal

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/tree"
)

// A Part describes an ashlar of a pipeline by its external properties.
type Part struct {
	Path     string   `json:"path"` // names from the root down, joined by slashes; equal names with the same parent get #2, #3, …
	Form     string   `json:"form"` // form of the ashlar; "guard" is a decision in glue on whether the next part runs
	Version  string   `json:"version,omitempty"`
	Type     string   `json:"type,omitempty"`   // node type that the part produces
	Schema   string   `json:"schema,omitempty"` // digest of the type's schema
	Reads    []Read   `json:"reads,omitempty"`
	Branches []string `json:"branches,omitempty"` // branch names of a match
	Rounds   int      `json:"rounds,omitempty"`   // maximum rounds of a loop
	Detail   string   `json:"detail,omitempty"`   // digest of the part's configuration, such as model, tools and checks
	// Settings is the JSON whose digest is Detail. It is empty if it would be too long.
	Settings json.RawMessage `json:"settings,omitempty"`
	Prompt   string          `json:"prompt,omitempty"` // constant prompt; if over 4 KiB long, its beginning and a digest
	Print    dag.ID          `json:"print"`            // fingerprint of the part, including all parts below it
}

// Read describes a query with which a part reads nodes.
type Read struct {
	Query   string `json:"query"`          // written as in programs
	Type    string `json:"type,omitempty"` // node type that the query reads; empty for any type
	Nearest bool   `json:"nearest,omitempty"`
}

const guardForm = "guard"

// maxParts is the maximum number of parts recorded per pipeline. They are needed only to explain changes.
const maxParts = 10_000

// Shape returns the parts of a pipeline, parents first, or nil if the pipeline has more than 10,000 parts. A reduce and the ashlar
// that it wraps form one part, as in the paths of a run.
func Shape(p stone.Ashlar) []Part {
	var parts []Part
	left := maxAllSettings
	var walk func(a tree.Child, up, path string)
	walk = func(a tree.Child, up, path string) {
		if len(parts) > maxParts {
			return
		}
		if !a.Guard.IsZero() {
			parts = append(parts, Part{Path: address.Child(up, a.Guard.Name(), 1), Form: guardForm, Version: a.Guard.Version()})
		}
		p := part(a.Ashlar, path)
		if left -= len(p.Settings); left < 0 {
			p.Settings = nil
		}
		parts = append(parts, p)
		for c := range tree.Guarded(a.Ashlar) {
			walk(c, path, address.Child(path, c.Name(), c.Occurrence))
		}
	}
	if walk(tree.Child{Ashlar: tree.Body(p)}, "", address.Escape(p.Name())); len(parts) > maxParts {
		return nil
	}
	return parts
}

func part(a stone.Ashlar, path string) Part {
	p := Part{Path: path, Form: a.Form(), Version: a.Version(), Branches: a.Branches(), Rounds: a.Rounds(), Print: a.Fingerprint()}
	if t := a.Produces(); t != nil {
		sum := sha256.Sum256(t.Schema().JSON())
		p.Type, p.Schema = t.Name(), fmt.Sprintf("%x", sum[:8])
	}
	d := a.Detail()
	if d.Fingerprint != nil {
		print := d.Fingerprint()
		sum := sha256.Sum256(print)
		p.Detail, p.Settings = fmt.Sprintf("%x", sum[:8]), settingsOf(print)
	}
	if d.Prompt != nil {
		p.Prompt = shortened(d.Prompt())
	}
	for _, q := range a.Queries() {
		r := Read{Query: q.String(), Nearest: q.IsNearest()}
		if t := q.Type(); t != nil {
			r.Type = t.Name()
		}
		p.Reads = append(p.Reads, r)
	}
	return p
}

// shortened returns the form in which a prompt is recorded with a run. If the prompt is long, this is its beginning and a digest.
func shortened(prompt string) string {
	const most = 4 << 10
	if len(prompt) <= most {
		return prompt
	}
	sum := sha256.Sum256([]byte(prompt))
	return fmt.Sprintf("%s\n… (%d bytes, %x)", strings.ToValidUTF8(prompt[:most], ""), len(prompt), sum[:8])
}

func index(parts []Part) map[string]Part {
	m := make(map[string]Part, len(parts))
	for _, p := range parts {
		m[p.Path] = p
	}
	return m
}

// differences returns descriptions of the differences between two parts, except for their names.
func differences(a, b Part) []string {
	var out []string
	say := func(what, was, is string) {
		if was != is {
			out = append(out, fmt.Sprintf("the %s of %s changed from %s to %s", what, b.Path, was, is))
		}
	}
	say("form", a.Form, b.Form)
	say("version", quote(a.Version), quote(b.Version))
	say("type", quote(a.Type), quote(b.Type))
	if a.Type == b.Type && a.Schema != b.Schema {
		out = append(out, fmt.Sprintf("the schema of type %s of %s changed", quote(b.Type), b.Path))
	}
	for _, q := range a.Reads {
		if !slices.Contains(b.Reads, q) {
			out = append(out, fmt.Sprintf("%s does not read %s any more", b.Path, q.Query))
		}
	}
	for _, q := range b.Reads {
		if !slices.Contains(a.Reads, q) {
			out = append(out, fmt.Sprintf("%s now reads %s", b.Path, q.Query))
		}
	}
	if a.Detail != b.Detail {
		what := "its model, tools, checks or limits"
		if known := changedSettings(a.Settings, b.Settings); len(known) > 0 {
			what = strings.Join(known, "; ")
		}
		out = append(out, fmt.Sprintf("the settings of %s changed: %s", b.Path, what))
	}
	say("branches", "["+strings.Join(a.Branches, " ")+"]", "["+strings.Join(b.Branches, " ")+"]")
	say("bound", strconv.Itoa(a.Rounds), strconv.Itoa(b.Rounds))
	return out
}

func quote(s string) string {
	if s == "" {
		return "none"
	}
	if _, err := dag.ParseID(s); err == nil {
		return s[:12] // a digest
	}
	return strconv.Quote(s)
}
