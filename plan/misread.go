package plan

import (
	"regexp"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/edn"
)

// This file finds data that its author may have meant as a slot: "{{x}}" in a string, a name outside an emit, and Clojure forms.

const notExpanded = "not-expanded"

// holes match the placeholders of template languages.
var holes = regexp.MustCompile(`\{\{\s*[:.$@]?([\w/-]+)[^{}]*\}\}|\$\{\s*([\w/-]+)[^{}]*\}`)

// misread adds a finding for each part of a template that looks like a slot but is data. The finding is a warning in a user's plan,
// where the data may be intended, and an error in a plan that a capability returned.
func (c *compiler) misread(n *node, known *scope, at *place, words bool) {
	switch v := at.value; v.Kind() {
	case edn.KindMap:
		if key := slotKey(v); key != "" && key != slotText {
			return
		}
		if _, ok := formulaIn(v); ok {
			return
		}
		if as, ok := nodeIn(v); ok {
			c.find(at, stone.Finding{Type: notExpanded, Ashlar: label(n), Queried: as, Warning: !c.answers},
				"this %q is a node within a value, which is not run: put it before this node with :as, and read its slot", as)
			return
		}
		for k, e := range v.Entries() {
			if e.Len() > 0 || textual(e) {
				c.misread(n, known, at.field(k.Text(), e), words)
			}
		}
	case edn.KindVector, edn.KindList, edn.KindSet:
		if v.Kind() == edn.KindList && v.Len() > 0 && v.At(0).Kind() == edn.KindSymbol {
			c.find(at, stone.Finding{Type: notExpanded, Ashlar: label(n), Queried: v.At(0).Text(), Warning: !c.answers},
				"forms such as (%s …) are not evaluated: write {:cel \"…\"} for an expression, {:slot/text […]} for a text", v.At(0).Text())
			return
		}
		for i, e := range v.Elements() {
			if e.Len() > 0 || textual(e) {
				c.misread(n, known, at.item(i, e), false)
			}
		}
	case edn.KindKeyword, edn.KindString:
		c.misreadText(n, known, at, words)
	}
}

// nodeIn reports whether v looks like a node, that is, whether it has a known op and either "intent" or "as". It returns the op.
func nodeIn(v edn.Value) (name string, ok bool) {
	of, _ := v.Field("op")
	name, _ = of.Name()
	_, intent := v.Field("intent")
	_, as := v.Field("as")
	_, known := opOf(name)
	return name, known && (intent || as)
}

func textual(v edn.Value) bool { return v.Kind() == edn.KindString || v.Kind() == edn.KindKeyword }

func (c *compiler) misreadText(n *node, known *scope, at *place, words bool) {
	f := stone.Finding{Type: notExpanded, Ashlar: label(n), Warning: !c.answers}
	if name := word(at.value); name != "" && !words && known.find(name) != nil {
		f.Queried = name
		c.find(at, f, "the name %q is data here, not the slot: write {:slot/id :%[1]s} for its value", name)
		return
	}
	text := at.value.Text()
	if at.value.Kind() != edn.KindString || !strings.Contains(text, "{{") && !strings.Contains(text, "${") {
		return
	}
	for _, hole := range holes.FindAllStringSubmatch(text, -1) {
		name := hole[1] + hole[2]
		slot, _, _ := strings.Cut(name, ".")
		if known.find(slot) == nil {
			continue
		}
		f.Queried = slot
		if hole[0] == text {
			c.find(at, f, "texts are not expanded: write {:slot/id :%s} for the value of the slot", slot)
		} else {
			c.find(at, f, "texts are not expanded: write {:slot/text [\"…\" {:slot/id :%s} \"…\"]} for a text with the slot", slot)
		}
		return
	}
}
